# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, and the tables that say it."""
import csv
import statistics
from dataclasses import dataclass, field

from .catalogue import DETAILS, METRICS, WITH_X
from .text import number, size_text


@dataclass
class Series:
    """All runs of one variant for one measured value."""
    unit: str = ""
    medians: dict = field(default_factory=dict)  # pair -> median of its samples
    p10s: dict = field(default_factory=dict)
    p99s: dict = field(default_factory=dict)

    def median(self):
        return statistics.median(self.medians.values())


class Results:
    """Rows of every run, and what the tables say about them."""

    columns = ["transport", "benchmark", "case", "bytes", "x", "metric", "unit", "variant", "pair", "samples", "median", "p10",
               "p90", "p99", "min", "max", "compute"]

    def __init__(self, compute="spin"):
        self.compute = compute  # how the benchmarks computed that know --compute
        self.rows = []
        self.series = {}
        self.steps = {}
        self.variants = {}  # (transport, benchmark) -> its variants, the reference first

    def add(self, transport, names, variant, pair, row, name=None):
        """Take in one line of a benchmark.

        names: all variants of that benchmark, the reference first; name: what to call it, if not as the line does
        """
        benchmark, case, size, x, metric, unit, samples, *values = row
        benchmark = name or benchmark
        self.variants.setdefault((transport, benchmark), tuple(names))
        self.rows.append([transport, benchmark, case, size, x, metric, unit, variant, pair, samples, *values, self.compute])
        key = (transport, benchmark, case, int(size), metric, self.step(transport, benchmark, case, variant, pair, x))
        series = self.series.setdefault(key, {}).setdefault(variant, Series(unit))
        series.medians[pair] = float(values[0])
        series.p10s[pair] = float(values[1])
        series.p99s[pair] = float(values[3])

    def step(self, transport, benchmark, case, variant, pair, x):
        """What the values of several runs have in common: x, but for `progress`, whose delays follow the measured transfer, the step."""
        if benchmark != "progress":
            return float(x)
        seen = self.steps.setdefault((transport, case, variant, pair), [])
        if x not in seen:
            seen.append(x)
        return seen.index(x) / 4

    def write_csv(self, path):
        with open(path, "w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(self.columns)
            writer.writerows(self.rows)

    def groups(self):
        """Every list of variants, with the series of the benchmarks that were compared in these."""
        groups = {}
        for key, by_variant in self.series.items():
            groups.setdefault(self.variants[key[0], key[1]], {})[key] = by_variant
        return groups.items()

    def briefs(self):
        """The tables for the screen: medians only."""
        return [self.brief(series, variants) for variants, series in self.groups()]

    def tables(self):
        return [self.table(series, variants) for variants, series in self.groups()]

    @staticmethod
    def brief(series, variants):
        header = ["where", "what", "size", "unit", *variants] + [f"{v} vs {variants[0]}" for v in variants[1:]]
        lines = []
        for (transport, benchmark, case, size, metric, x), by_variant in series.items():
            if metric not in METRICS:
                continue
            unit = next(iter(by_variant.values())).unit
            label = label_text(benchmark, size, x)
            line = [transport, f"{metric} {case}" if case != "-" else f"{benchmark} {metric}", label, unit]
            line += [number(by_variant[v].median()) if v in by_variant else "-" for v in variants]
            line += [compare(by_variant.get(variants[0]), by_variant.get(v), unit)[0] for v in variants[1:]]
            lines.append(line)
        return header, lines

    @staticmethod
    def table(series, variants):
        """Rows of text: one per measured value, with every variant and the ratio or difference to the first."""
        base = variants[0]
        header = ["transport", "benchmark", "case", "size", "metric", "unit"]
        for variant in variants:
            header += [variant, "min..max", "p99"]
        for variant in variants[1:]:
            header += [f"{variant} vs {base}", "min..max"]
        lines = []
        for (transport, benchmark, case, size, metric, x), by_variant in series.items():
            if metric not in METRICS | DETAILS:
                continue
            unit = next(iter(by_variant.values())).unit
            label = label_text(benchmark, size, x)
            line = [transport, benchmark, case, label, metric, unit]
            for variant in variants:
                s = by_variant.get(variant)
                if s is None:
                    line += ["-", "-", "-"]
                    continue
                line += [number(s.median()), f"{number(min(s.medians.values()))}..{number(max(s.medians.values()))}",
                         number(statistics.median(s.p99s.values()))]
            for variant in variants[1:]:
                line += compare(by_variant.get(base), by_variant.get(variant), unit)
            lines.append(line)
        return header, lines


def label_text(benchmark, size, x):
    if benchmark == "ring_costs":
        return x_text(benchmark, x) if x > 0 else size_text(size)
    return size_text(size) + (", " + x_text(benchmark, x) if benchmark in WITH_X else "")


def x_text(benchmark, x):
    return f"{x:.2f} transfers" if benchmark == "progress" else WITH_X[benchmark].format(x)


def compare(base, other, unit):
    """Ratio to the base, pair by pair; for percentages the difference in points."""
    if base is None or other is None:
        return ["-", "-"]
    common = sorted(set(base.medians) & set(other.medians))
    if unit == "%":
        values = [other.medians[p] - base.medians[p] for p in common]
        text = [f"{v:+.1f} pt" for v in (statistics.median(values), min(values), max(values))] if values else []
    else:
        values = [other.medians[p] / base.medians[p] for p in common if base.medians[p] > 0]
        text = [f"{v:.3f}" for v in (statistics.median(values), min(values), max(values))] if values else []
    return [text[0], f"{text[1]}..{text[2]}"] if text else ["-", "-"]
