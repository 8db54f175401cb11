// Messages to the user; needs Open MPI.
#include "opal/mca/common/overlap/message.hpp"

#include "opal/mca/common/overlap/openmpi.hpp"

namespace overlap {

void show_message(const char* topic, const std::string& text) noexcept
{
    add_help_folder();
    if (access(OVERLAP_HELP_FOLDER "/help-overlap.txt", R_OK) == 0)
        opal_show_help("help-overlap.txt", topic, 1, text.c_str());
    else  // runs from the build tree
        opal_output(0, "%s", text.c_str());
}

}  // namespace overlap
