# SPDX-License-Identifier: BSD-3-Clause
"""Plots of the results, SVG and PNG; needs python3-matplotlib."""
import statistics

from .catalogue import METRICS, WITH_X
from .text import say, size_text

COLORS = ["#888888", "#c0392b", "#2471a3", "#1e8449", "#b7950b", "#6c3483"]


def import_matplotlib():
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "overlap"})
    import matplotlib.pyplot as pyplot
    return pyplot


def by_x(benchmark, metric):
    """Is x on the axis, and not the size?"""
    return benchmark in WITH_X and (benchmark != "ring_costs" or metric == "poll")


def plot_all(results, folder, footer):
    """One figure per benchmark and transport, as SVG and PNG; returns the paths without their ending."""
    pyplot = import_matplotlib()
    if pyplot is None:
        say("no plots: matplotlib is missing (Debian: python3-matplotlib)")
        return []
    groups = {}
    for (transport, benchmark, case, size, metric, x), by_variant in results.series.items():
        if metric in METRICS and benchmark not in ("rtr_usage", "waitprofile", "ring_memory", "ring_components"):
            panel = (f"{case} {size_text(size)}" if by_x(benchmark, metric) else case, metric)
            groups.setdefault((transport, benchmark), {}).setdefault(panel, []).append((size, x, by_variant))
    paths = []
    for (transport, benchmark), panels in groups.items():
        columns = 2 if len(panels) > 1 else 1
        lines = (len(panels) + columns - 1) // columns
        figure, axes = pyplot.subplots(lines, columns, figsize=(5.2 * columns, 3.3 * lines + 0.4), squeeze=False)
        for axis in axes.flat[len(panels):]:
            axis.set_visible(False)
        for axis, ((case, metric), points) in zip(axes.flat, panels.items()):
            draw(axis, case, metric, points, results.variants[transport, benchmark], benchmark)
        figure.suptitle(f"{benchmark}, {transport}")
        figure.text(0.01, 0.005, footer, fontsize=6, color="#666666")
        figure.tight_layout(rect=(0, 0.02, 1, 1))
        path = folder / f"{benchmark}-{transport}"
        figure.savefig(f"{path}.svg", metadata={"Date": None})
        figure.savefig(f"{path}.png", dpi=130)
        pyplot.close(figure)
        paths.append(path)
    return paths


def draw(axis, case, metric, points, variants, benchmark):
    unit = next(iter(points[0][2].values())).unit
    along_x = by_x(benchmark, metric)
    labels = [f"{x:g}" if along_x else size_text(size) for size, x, _ in points]
    for index, variant in enumerate(variants):
        at, middle, low, high = [], [], [], []
        for i, (_size, _x, by_variant) in enumerate(points):
            if variant in by_variant:
                values = list(by_variant[variant].medians.values())
                at.append(i)
                middle.append(statistics.median(values))
                low.append(min(values))
                high.append(max(values))
        if not at:
            continue
        color = COLORS[index % len(COLORS)]
        if len(points) == 1:
            axis.bar([index], middle, color=color, label=variant, width=0.6)
            axis.errorbar([index], middle, yerr=[[middle[0] - low[0]], [high[0] - middle[0]]], color="black", capsize=3)
        else:
            axis.plot(at, middle, color=color, marker="o", markersize=3, label=variant)
            axis.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)
    if len(points) == 1:
        axis.set_xticks([])
        axis.set_xlabel(labels[0])
    else:
        step = max(1, len(labels) // 8)
        axis.set_xticks(range(0, len(labels), step), labels[::step], rotation=35 if not along_x else 0, fontsize=7)
        if along_x:
            axis.set_xlabel({"progress": "computation / transfer", "exchange": "communication / computation",
                             "matching": "messages", "crossing": "skew of the sender [us]", "ring_costs": "peers"}[benchmark] +
                            f" ({size_text(points[0][0])})" * (benchmark != "ring_costs"))
    if (metric == "half_round_trip" or benchmark in ("matching", "exchange", "ring_costs")) and len(points) > 1:
        axis.set_yscale("log")
    elif metric == "overlap":
        axis.set_ylim(-15, 105)
    else:
        axis.set_ylim(bottom=0)
    axis.set_title((case + ": " if case != "-" else "") + f"{metric.replace('_', ' ')} [{unit}]", fontsize=9)
    axis.legend(fontsize=7)
