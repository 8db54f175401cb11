#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draw the timeline of one exchange of a large message, from time stamps: who computes, who is in MPI, when the data moves.

Each variant runs timeline.cpp on btl/ring's software device (1 GB/s, 5 us) or another transport; of its exchanges the shortest
is drawn, the one that other work has disturbed least. Writes an SVG; needs nothing but Python 3.
"""
import argparse
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from runlib.catalogue import TRANSPORTS, VARIANTS, Benchmark
from runlib.options import HERE
from runlib.runner import Cleanup, Runner
from runlib.text import say

TITLES = {"ob1": "stock Open MPI (ob1)", "speculative": "pml/speculative"}
COLORS = {"compute": "#a9c7e8", "MPI_Wait": "#c0392b", "MPI_Irecv": "#1e8449", "MPI_Isend": "#1e8449", "data": "#e8b23a"}
WIDTH, LEFT, LANE = 860, 190, 26
REPEATS = 400  # exchanges of one run


def bar(x, y, width, color, title, height=LANE - 8):
    return (f'<rect x="{x:.1f}" y="{y}" width="{max(width, 2):.1f}" height="{height}" fill="{color}"><title>{title}</title></rect>')


def text(x, y, words, size=12, color="#222", anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="{color}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>')


def last_us(spans):
    return max(spans["receiver", "MPI_Wait"][1], spans["sender", "MPI_Wait"][1])


def draw(timelines, caption):
    """timelines: variant -> {(side, what): (begin, end)}"""
    end = max(span[1] for spans in timelines.values() for span in spans.values())
    scale = (WIDTH - LEFT - 30) / end
    parts, y = [], 14
    for variant, spans in timelines.items():
        parts.append(text(10, y + 12, TITLES.get(variant, variant), 13, weight="bold"))
        y += 20
        for lane, side, names in (("receiver", "receiver", ("MPI_Irecv", "compute", "MPI_Wait")),
                                  ("data moves", "receiver", ("data",)),
                                  ("sender", "sender", ("MPI_Isend", "compute", "MPI_Wait"))):
            parts.append(text(LEFT - 10, y + 14, lane, anchor="end"))
            parts.append(f'<line x1="{LEFT}" y1="{y + LANE - 2}" x2="{WIDTH - 30}" y2="{y + LANE - 2}" stroke="#ddd"/>')
            for what in names:
                if (side, what) in spans:
                    begin, stop = spans[side, what]
                    parts.append(bar(LEFT + begin * scale, y, (stop - begin) * scale, COLORS[what], f"{what}: {begin:.0f} to {stop:.0f} us"))
            y += LANE
        last = last_us(spans)
        parts.append(text(LEFT + last * scale + 4, y - LANE - 12, f"{last / 1000:.2f} ms", 11, "#555"))
        y += 10
    step = next(s for s in (100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 10 ** 9) if end / s <= 8)
    for tick in range(0, int(end) + 1, step):
        x = LEFT + tick * scale
        parts.append(f'<line x1="{x:.1f}" y1="{y - 6}" x2="{x:.1f}" y2="{y}" stroke="#888"/>')
        parts.append(text(x, y + 13, f"{tick / 1000:g}", 11, "#555", "middle"))
    parts.append(text(LEFT - 10, y + 13, "ms", 11, "#555", "end"))
    y += 30
    x = LEFT
    for what, words in (("compute", "computing"), ("MPI_Irecv", "starting (MPI_Irecv, MPI_Isend)"), ("MPI_Wait", "waiting (MPI_Wait)"),
                        ("data", "data arriving in the buffer")):
        parts.append(bar(x, y - 9, 12, COLORS[what], words, 12))
        parts.append(text(x + 17, y + 1, words, 11))
        x += 30 + 6.3 * len(words)
    parts.append(text(10, y + 22, caption, 10, "#777"))
    height = y + 32
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="sans-serif">\n<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("timeline.svg"))
    parser.add_argument("--transport", choices=TRANSPORTS, default="soft", help="default: soft")
    parser.add_argument("--variants", default="ob1,speculative")
    parser.add_argument("--size", default="1m")
    parser.add_argument("--args", default="", help="further arguments for timeline.cpp, for instance '--compute-us 3000'")
    parser.add_argument("--build", type=Path, default=HERE / "build")
    parser.add_argument("--runs", type=int, default=1, help=f"runs of each variant, of {REPEATS} exchanges each (default: 1)")
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args()
    subprocess.run(["sh", str(HERE / "build.sh"), str(options.build), "timeline"], check=True)
    variants = options.variants.split(",")
    runner = Runner(SimpleNamespace(known=VARIANTS, build=options.build.resolve(), nice=options.nice, mpirun="", verbose=False, wait_quiet=0,
                                    timeout=120, node_count=2, rate="1gbit"), Cleanup())
    program = [str(options.build.resolve() / "timeline"), "--sizes", options.size, "--repeats", str(REPEATS), *options.args.split()]
    timelines = {}
    for run in range(options.runs):
        for variant in variants:
            rows, why = runner.rows(options.transport, variant, program, Benchmark(""))
            if why is not None:
                sys.exit(f"timeline.py: {variant}: {why}")
            spans = {(side, what): (float(begin), float(end)) for _, side, what, begin, end in rows}
            if variant not in timelines or last_us(spans) < last_us(timelines[variant]):
                timelines[variant] = spans
    options.out.parent.mkdir(parents=True, exist_ok=True)
    what = {"soft": "software RDMA device, 1 GB/s, 5 us", "vader": "shared memory"}.get(options.transport, options.transport)
    options.out.write_text(draw(timelines, f"One message of {options.size.upper()}iB whose receive was posted first; {what}; the shortest of {REPEATS * options.runs} exchanges, "
                                           "from time stamps (examples/bench/timeline.py)"))
    say(f"timeline in {options.out}")


if __name__ == "__main__":
    main()
