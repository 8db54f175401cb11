// What the shared library offers to the components; everything else stays inside.
#pragma once

#define OVERLAP_EXPORT __attribute__((visibility("default")))
