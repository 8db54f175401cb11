# SPDX-License-Identifier: BSD-3-Clause
"""The figures to reach, and whether they were."""
import statistics
from dataclasses import dataclass

from .text import KIB, MIB, size_text


@dataclass(frozen=True)
class Figure:
    """A figure to reach: the worst of `sizes` (bytes) and `xs` of one metric, of a variant against the reference."""
    text: str
    transport: str
    benchmark: str
    metric: str
    kind: str  # "ratio" to the reference, "points" above it, the "value" itself, or "of_copy": what is saved in % of a copy
    limit: float
    at_most: bool
    sizes: tuple = (0, 1 << 62)
    cases: tuple = ()
    variant: str = "speculative"
    base: str = ""  # the reference, if not the first variant of the benchmark
    xs: tuple = (0, 1 << 62)


FIGURES = [
    Figure("half round trip 0 B to 4 KiB", "vader", "pingpong", "half_round_trip", "ratio", 1.03, True, (0, 4 * KIB)),
    Figure("ping-pong bandwidth 64 KiB to 4 MiB", "vader", "pingpong", "bandwidth", "ratio", 1.0, False, (64 * KIB, 4 * MIB)),
    Figure("window bandwidth 64 KiB to 4 MiB", "vader", "bandwidth", "bandwidth", "ratio", 1.0, False, (64 * KIB, 4 * MIB)),
    Figure("message rate 8 B", "vader", "message_rate", "rate", "ratio", 1.0, False),
    Figure("overlap of an early receiver 256 KiB to 4 MiB", "vader", "overlap", "overlap", "value", 90, False,
           (256 * KIB, 4 * MIB), ("receiver_early.receiver",)),
    Figure("overlap of an early receiver 256 KiB to 1 MiB", "nodes", "overlap", "overlap", "value", 80, False, (256 * KIB, MIB),
           ("receiver_early.receiver",)),
    Figure("overlap of the other cases 256 KiB to 4 MiB", "vader", "overlap", "overlap", "points", -3, False, (256 * KIB, 4 * MIB),
           ("receiver_early.sender", "sender_early.receiver", "sender_early.sender")),
    Figure("overlap of the other cases 256 KiB to 1 MiB", "nodes", "overlap", "overlap", "points", -3, False, (256 * KIB, MIB),
           ("receiver_early.sender", "sender_early.receiver", "sender_early.sender")),
    Figure("crossing RTR and RTS, adaptation on", "vader", "crossing", "latency", "ratio", 1.01, True),
    Figure("crossing RTR and RTS, adaptation off", "vader", "crossing", "latency", "ratio", 1.03, True, variant="no_adaptation"),
    Figure("extra bytes in % of the data", "vader", "rtr_usage", "extra_bytes", "value", 0.04, True),
    *[Figure(f"{who} early: overlap of both sides 64 KiB to 4 MiB", transport, "soft_overlap", "overlap", "value", 95, False,
             (64 * KIB, 4 * MIB), (f"{who}_early.receiver", f"{who}_early.sender"))
      for transport in ("soft", "soft_fast") for who in ("receiver", "sender")],
    Figure("ring against send/receive channel: latency 8 B", "vm", "ring_latency", "half_round_trip", "ratio", 0.76, True, (8, 8),
           variant="ring"),
    Figure("ring against send/receive channel: message rate 8 B", "vm", "ring_rate", "rate", "ratio", 2.0, False, (8, 8), variant="ring"),
    Figure("ring against pml/ucx rc_verbs: latency 8 B to 8 KiB", "vm", "ring_latency", "half_round_trip", "ratio", 1.0, True, (8, 8 * KIB),
           variant="ring", base="ucx"),
    Figure("ring against send/receive channel: latency 8 B", "soft", "ring_latency", "half_round_trip", "ratio", 0.76, True, (8, 8),
           variant="ring"),
    Figure("ring against send/receive channel: message rate 8 B", "soft", "ring_rate", "rate", "ratio", 2.0, False, (8, 8), variant="ring"),
    Figure("frequent buffer: a send of 8 KiB saves, in % of a copy", "soft", "frequent_overhead", "overhead", "of_copy", 90, False,
           (8 * KIB, 8 * KIB), ("send",), variant="ring"),
    Figure("poll time of an idle peer in ns", "soft", "ring_costs", "poll_per_peer", "value", 2, True, variant="tool", xs=(16, 1024)),
    Figure("poll time of 128 peers in ns", "soft", "ring_costs", "poll", "value", 250, True, variant="tool", xs=(128, 128)),
    Figure("8 B puts to allocated memory, one flush for 1000", "vader", "rma_rate_allocated", "rate", "ratio", 1.0, False, cases=("put",),
           variant="newrma"),
    Figure("8 B puts to created memory, one flush for 1000", "vader", "rma_rate_created", "rate", "ratio", 1.0, False, cases=("put",),
           variant="newrma", base="osc_pt2pt"),
    Figure("contended exclusive lock, 8 ranks: largest : smallest share", "vader", "rma_lock_8", "fairness", "value", 1.5, True,
           variant="newrma"),
    Figure("contended exclusive lock, 8 ranks: rate", "vader", "rma_lock_8", "rate", "ratio", 1.0, False, variant="newrma"),
    *[Figure("the seven patterns, non-blocking calls: delay passed on, %", transport, "rma_patterns", "passed_on", "value", 2, True,
             cases=tuple(f"{name}.nonblocking" for name in ("late_post", "early_transfer", "early_wait", "late_complete", "early_fence",
                                                           "wait_at_fence", "late_unlock")), variant=variant)
      for transport, variant in (("vader", "newrma_on"), ("nodes", "newrma"))],
    Figure("memory of a process, MiB", "soft", "ring_memory", "memory", "value", 8, True, cases=("registered",), variant="ring"),
]


def figures(results):
    """Judge the figures to reach that were measured: a header and lines (text, variant, wanted, worst, where, reached)."""
    out = []
    for figure in FIGURES:
        worst = None
        for key, by_variant in results.series.items():
            value = value_of(results, figure, key, by_variant)
            if value is not None and (worst is None or (value > worst[0]) == figure.at_most):
                worst = (value, place(key))
        if worst is None:
            continue
        reached = worst[0] <= figure.limit if figure.at_most else worst[0] >= figure.limit
        unit = {"ratio": " x", "points": " pt", "value": "", "of_copy": " %"}[figure.kind]
        out.append([f"{figure.text}, {figure.transport}", figure.variant, f"{'<=' if figure.at_most else '>='} {figure.limit:g}{unit}",
                    f"{worst[0]:.4g}", worst[1], "reached" if reached else "NOT reached"])
    return ["figure (worst of its range)", "variant", "wanted", "measured", "where", ""], out


def place(key):
    _transport, benchmark, case, size, _metric, x = key
    return (f"{x:g} peers" if benchmark == "ring_costs" else size_text(size)) + ("" if case == "-" else f", {case}")


def value_of(results, figure, key, by_variant):
    """What a series says about a figure; None when it is about something else."""
    transport, benchmark, case, size, metric, x = key
    if (transport, benchmark, metric) != (figure.transport, figure.benchmark, figure.metric):
        return None
    if not figure.sizes[0] <= size <= figure.sizes[1] or not figure.xs[0] <= x <= figure.xs[1]:
        return None
    if figure.cases and case not in figure.cases:
        return None
    mine, base = by_variant.get(figure.variant), by_variant.get(figure.base or results.variants[transport, benchmark][0])
    if mine is None or (mine is base and figure.kind != "value"):
        return None
    if figure.kind == "value":
        return mine.median()
    pairs = sorted(set(base.medians) & set(mine.medians)) if base is not None else []
    if not pairs:
        return None
    both = [(mine.medians[p], base.medians[p]) for p in pairs]
    if figure.kind == "ratio":
        return statistics.median(m / b for m, b in both)
    if figure.kind == "points":
        return statistics.median(m - b for m, b in both)
    # What code costs is what its least disturbed runs take; a copy is too short to be seen in the others.
    both = [(mine.p10s[p], base.p10s[p]) for p in pairs]
    copy = results.series.get((transport, "ring_costs", "copy", size, "cost", 0.0), {}).get("tool")  # ns; the overhead is in us
    return None if copy is None else statistics.median(100e3 * (b - m) / copy.median() for m, b in both)
