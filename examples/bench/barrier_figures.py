#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draw Figures 3 to 7 of the barrier paper (docs/requirements.md, P6) from the simulation of coll/mq's plans in virtual time, and print
tables with what the paper says in words beside them, then the same for up to 65,536 ranks (minutes; --most 4096 is quick).

Compiles the simulation itself. Writes JSON, SVG and PNG; needs a C++20 compiler, plots python3-matplotlib.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from runlib.plots import COLORS, import_matplotlib
from runlib.runner import ROOT
from runlib.text import say

MQ = ("MQ-RDMA sparse", "MQ-RDMA dense", "MQ-send sparse", "MQ-send dense")
ALL = ("MQ-RDMA sparse", "MQ-send sparse", "PTP-RDMA", "PTP-send/recv")
# Figure, what it shows, key, lines. The simulation has no other cost for a nonblocking barrier: figures 4 and 5 are one here.
FIGURES = (
    (3, "barrier, queues: microseconds", "latency_us", MQ),
    (4, "barrier: microseconds", "latency_us", ALL),
    (5, "nonblocking barrier: microseconds", "latency_us", ALL),
    (6, "processor free, tests between: percent", "tests_pct", ALL),
    (7, "processor free, one block of work: percent", "block_pct", ALL),
)
# Only what the paper's text says: figure, line, ranks, words.
PAPER = {
    (3, "MQ-RDMA sparse", 64): "32",
    (3, "MQ-send dense", 64): "54",
    (4, "MQ-RDMA sparse", 64): "32",
    (4, "PTP-RDMA", 64): "faster than MQ-RDMA",
    (6, "MQ-RDMA sparse", 8): "30 to 45",
    (6, "MQ-RDMA sparse", 64): "around 90",
    (6, "PTP-RDMA", 8): "30 to 45",
    (6, "PTP-RDMA", 64): "up to 90",
    (7, "MQ-RDMA sparse", 64): "about 80",
    (7, "PTP-RDMA", 64): "at most 30",
    (7, "PTP-send/recv", 64): "at most 30",
}


def simulate(options):
    program = options.out / "barrier_figures"
    folder = ROOT / "ompi" / "mca" / "coll" / "mq"
    sources = [folder / "sim" / f"{name}.cpp" for name in ("barrier_figures", "availability", "barrier_network")]
    sources += [folder / "protocol" / f"{name}.cpp" for name in ("plan", "barrier_plan")]
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", f"-I{ROOT}", "-o", program, *sources]
    subprocess.run([str(word) for word in command], check=True)
    done = subprocess.run([str(program), str(options.most)], check=True, stdout=subprocess.PIPE, text=True)
    (options.out / "barrier_figures.json").write_text(done.stdout)
    return json.loads(done.stdout)


def table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        say("  " + "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip())
    say()


def print_figures(small):
    values = {(row["line"], row["ranks"]): row for row in small}
    ranks = sorted({row["ranks"] for row in small})
    for number, title, key, lines in FIGURES:
        say(f"Figure {number}: {title}")
        rows = [["ranks", *(str(n) for n in ranks), "the paper's text"]]
        for line in lines:
            said = [f"{PAPER[number, line, n]} at {n}" for n in ranks if (number, line, n) in PAPER]
            rows.append([line, *(f"{values[line, n][key]:.1f}" for n in ranks), "; ".join(said)])
        table(rows)


def print_large(large):
    say("More ranks: a barrier; what is free for one block of work; how much later than everybody's work it ends if a rank comes 100 us late")
    rows = [["ranks", "", "us", "free %", "late us", "connections", "KiB per rank"]]
    for row in large:
        rows.append([str(row["ranks"]), row["line"], f"{row['latency_us']:.1f}", f"{row['block_pct']:.1f}", f"{row['late_delay_us']:.2f}",
                     str(row["connections"]), f"{row['memory_kib']:.0f}"])
    table(rows)


def draw(small, folder):
    pyplot = import_matplotlib()
    if pyplot is None:
        say("no plots: matplotlib is missing (Debian: python3-matplotlib)")
        return
    figure, axes = pyplot.subplots(3, 2, figsize=(10.4, 10.3))
    axes.flat[-1].set_visible(False)
    for axis, (number, title, key, lines) in zip(axes.flat, FIGURES):
        for color, line in zip(COLORS[1:], lines):
            points = [(row["ranks"], row[key]) for row in small if row["line"] == line]
            axis.plot(*zip(*points), marker="o", markersize=3, color=color, label=line)
        for (where, line, ranks), words in PAPER.items():
            if where == number and words.replace("about ", "").isdigit():
                axis.plot(ranks, float(words.replace("about ", "")), "k*", markersize=9)
        axis.set_xscale("log", base=2)
        axis.set_xlabel("ranks")
        axis.set_ylim(0)
        axis.set_title(f"Figure {number}: {title}", fontsize=9)
        axis.legend(fontsize=7)
    figure.text(0.52, 0.2, "simulated in virtual time, 8 nodes;\nstars: numbers in the paper's text\n(costs are chosen to come near them)", fontsize=9)
    figure.tight_layout()
    figure.savefig(folder / "barrier_figures.svg", metadata={"Date": None})
    figure.savefig(folder / "barrier_figures.png", dpi=130)
    pyplot.close(figure)
    say(f"{folder / 'barrier_figures'}.svg .png .json")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--most", type=int, default=65536, help="the most ranks")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = simulate(options)
    print_figures(results["small"])
    if results["large"]:
        print_large(results["large"])
    draw(results["small"], options.out)


if __name__ == "__main__":
    sys.exit(main())
