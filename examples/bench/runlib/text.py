# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, sizes and tables as text."""
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20


def say(text=""):
    print(text, flush=True)


def read_first(path, default=""):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def number(value):
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def as_text(header, lines, left=6):
    widths = [max(len(r[i]) for r in [header] + lines) for i in range(len(header))]

    def one(r):
        return "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))).rstrip()
    return "\n".join([one(header), "-" * len(one(header))] + [one(r) for r in lines]) + "\n"


def as_markdown(header, lines, left=6):
    def one(r):
        return "| " + " | ".join(r) + " |"

    return "\n".join([one(header), one(["---"] * left + ["---:"] * (len(header) - left))] + [one(r) for r in lines]) + "\n"
