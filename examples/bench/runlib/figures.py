"""The figures to reach, and whether they were."""
import statistics
from dataclasses import dataclass

from .text import KIB, MIB, size_text


@dataclass(frozen=True)
class Figure:
    """A figure to reach: the worst of `sizes` (bytes; or x) of one metric, of a variant against the first one."""
    text: str
    transport: str
    benchmark: str
    metric: str
    kind: str  # "ratio" to the first variant, "points" above it, or the "value" itself
    limit: float
    at_most: bool
    sizes: tuple = (0, 1 << 62)
    cases: tuple = ()
    variant: str = "speculative"


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
]


def figures(results, variants):
    """Judge the figures to reach that were measured: (text, variant, wanted, worst, where, reached)."""
    out = []
    for figure in FIGURES:
        if figure.variant not in variants or figure.variant == variants[0]:
            continue
        worst = None
        for (transport, benchmark, case, size, metric, x), by_variant in results.series.items():
            mine, base = by_variant.get(figure.variant), by_variant.get(variants[0])
            if (transport, benchmark, metric) != (figure.transport, figure.benchmark, figure.metric) or mine is None:
                continue
            if not figure.sizes[0] <= size <= figure.sizes[1] or (figure.cases and case not in figure.cases):
                continue
            value = mine.median()
            if figure.kind != "value":
                if base is None:
                    continue
                pairs = sorted(set(base.medians) & set(mine.medians))
                if not pairs:
                    continue
                both = [(mine.medians[p], base.medians[p]) for p in pairs]
                value = statistics.median(m - b if figure.kind == "points" else m / b for m, b in both)
            if worst is None or (value > worst[0]) == figure.at_most:
                worst = (value, f"{size_text(size)}" + ("" if case == "-" else f", {case}"))
        if worst is None:
            continue
        reached = worst[0] <= figure.limit if figure.at_most else worst[0] >= figure.limit
        wanted = f"{'<=' if figure.at_most else '>='} {figure.limit:g}" + {"ratio": " x", "points": " pt", "value": ""}[figure.kind]
        out.append([f"{figure.text}, {figure.transport}", figure.variant, wanted, f"{worst[0]:.4g}", worst[1],
                    "reached" if reached else "NOT reached"])
    return ["figure (worst of its range)", "variant", "wanted", "measured", "where", ""], out
