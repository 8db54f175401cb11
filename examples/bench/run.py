#!/usr/bin/python3
"""Run the benchmarks for several variants of Open MPI, interleaved, and write CSV, tables and plots.

A variant is a set of mpirun arguments: ob1, speculative, ucx, or NAME='ARGS'. For each benchmark and transport the variants
run one after the other, in turning order, at least five times; the first variant is what the others are compared with,
run by run. Python 3 standard library; plots need python3-matplotlib.
"""
import argparse
import atexit
import csv
import datetime
import os
import platform
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NODES = ROOT / "test" / "support" / "nodes" / "nodes.sh"
COMPONENT_PATH = "OMPI_MCA_mca_base_component_path"

VARIANTS = {
    "ob1": "--mca pml ob1",
    "speculative": "--mca pml speculative",
    "eager_flag": "--mca pml speculative --mca pml_speculative_hazard_control eager_flag",
    "no_adaptation": "--mca pml speculative --mca pml_speculative_adaptation 0",
    "no_speculation": "--mca pml speculative --mca pml_speculative_speculation 0",
    "ucx": "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any",
}


@dataclass(frozen=True)
class Benchmark:
    """One program of this folder: its arguments, those of --quick, and what is added or changed between simulated nodes."""
    program: str
    full: str = ""
    quick: str = ""
    nodes: str = ""
    nodes_quick: str = ""
    calibrate: bool = False  # measure the communication time of the first variant before and give it to all (--comm-us)


BENCHMARKS = {
    "pingpong": Benchmark("pingpong", "--budget-ms 80", "--sizes 0,8,512,4k,64k,1m,4m --budget-ms 40", "",
                          "--sizes 8,4k,64k,1m --budget-ms 60"),
    "message_rate": Benchmark("message_rate", "", "--budget-ms 150"),
    "bandwidth": Benchmark("bandwidth", "--budget-ms 100", "--sizes 64k,256k,1m,4m --budget-ms 40", "--samples 10",
                           "--sizes 64k,1m --samples 5 --window 4"),
    "overlap": Benchmark("overlap", "--budget-ms 60", "--sizes 64k,256k,1m,4m --budget-ms 25", "--lead-us 2000 --budget-ms 300",
                         "--lead-us 2000 --sizes 256k,512k,1m --budget-ms 30"),
    "progress": Benchmark("overlap", "--progress 1 --sizes 1m --budget-ms 20", "--progress 1 --sizes 1m --budget-ms 8",
                          "--lead-us 2000 --budget-ms 120", "--progress 1 --sizes 1m --lead-us 2000 --budget-ms 60"),
    "exchange_128k": Benchmark("exchange", "--sizes 128k", "--sizes 128k --budget-ms 30", "--budget-ms 150", calibrate=True),
    "exchange_1m": Benchmark("exchange", "--sizes 1m", "--sizes 1m --budget-ms 30", "--iterations 20", calibrate=True),
    "crossing": Benchmark("crossing", "", "--sizes 1k,128k,1m --budget-ms 60", "--budget-ms 200 --skews-ns 0,2000,5000,10000",
                          "--sizes 1k,128k,1m --skews-ns 0,2000,5000,10000"),
    "matching": Benchmark("matching", "", "--budget-ms 100 --samples 20"),
    "rtr_usage": Benchmark("rtr_usage", "", "--messages 100", "--messages 60"),
}
QUICK = ["pingpong", "message_rate", "overlap"]

# What the tables and plots show, with the title of the axis; everything else goes to the CSV only.
METRICS = {"half_round_trip", "bandwidth", "rate", "overlap", "time", "iteration", "latency", "per_message", "rtr_usage",
           "extra_bytes", "seconds", "rtr_unused"}
WITH_X = {"progress": "{:.4g} us", "exchange": "comm/comp {:g}", "matching": "{:g} messages", "crossing": "skew {:g} us"}
COLORS = ["#888888", "#c0392b", "#2471a3", "#1e8449", "#b7950b", "#6c3483"]


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


KIB, MIB = 1 << 10, 1 << 20
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


def say(text=""):
    print(text, flush=True)


def read_first(path, default=""):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


# ---------------------------------------------------------------------------------------------- running


class Cleanup:
    """What must not stay behind: mpirun, simulated nodes, files of shared memory."""

    def __init__(self):
        self.process = None
        self.nodes_dir = None
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
        for old in Path(shm).glob("overlap-bench-*-*"):  # of a run that was killed
            if not Path("/proc", old.name.split("-")[2]).exists():
                shutil.rmtree(old, ignore_errors=True)
        self.scratch = Path(tempfile.mkdtemp(prefix=f"overlap-bench-{os.getpid()}-", dir=shm))
        atexit.register(self.run)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.on_signal)

    def on_signal(self, number, _frame):
        say(f"\nstopped by signal {number}; cleaning up")
        sys.exit(128 + number)

    def stop_process(self):
        """End mpirun in order, by force after five seconds."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(process.pid, number)
                process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                return

    def run(self):
        self.stop_process()
        if self.nodes_dir is not None:
            subprocess.run([str(NODES), "down", self.nodes_dir], check=False)
            self.nodes_dir = None
        shutil.rmtree(self.scratch, ignore_errors=True)


class Runner:
    """Start mpirun for one variant on one transport and collect its rows."""

    def __init__(self, options, cleanup):
        self.options = options
        self.cleanup = cleanup
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                UCX_POSIX_DIR=str(cleanup.scratch), UCX_LOG_LEVEL="error")
        self.cores = physical_cores()

    def command(self, transport, variant, program, ranks):
        arguments = shlex.split(self.options.variants[variant])
        is_ucx = "ucx" in arguments
        if transport == "nodes":
            if self.cleanup.nodes_dir is None:
                self.make_nodes()
            start = [str(NODES), "run", self.cleanup.nodes_dir, "-n", str(ranks)]
            where = ["--mca", "btl", "tcp,self"] if not is_ucx else ["-x", "UCX_TLS=tcp,self"]
        else:
            start = ["mpirun", "-n", str(ranks)]
            start += ["--bind-to", "core"] if ranks <= self.cores else ["--bind-to", "none", "--oversubscribe"]
            where = {"vader": ["--mca", "btl", f"{shared_memory_btl()},self"],
                     "tcp": ["--mca", "btl", "tcp,self"] + socket_options()}[transport]
            if is_ucx:
                where = ["-x", {"vader": "UCX_TLS=sm,self", "tcp": "UCX_TLS=tcp,self"}[transport]]
            elif transport == "vader":
                where += ["--mca", f"btl_{shared_memory_btl()}_backing_directory", str(self.cleanup.scratch)]
        if self.options.nice:
            start = ["nice", "-n", str(self.options.nice)] + start
        return start + arguments + where + shlex.split(self.options.mpirun) + program

    def make_nodes(self):
        folder = str(self.cleanup.scratch / "nodes")
        self.cleanup.nodes_dir = folder
        subprocess.run([str(NODES), "up", folder, str(self.options.node_count), self.options.rate], check=True,
                       env=dict(os.environ, NODES_OWNER=str(os.getpid()), SLOTS="1"))

    def rows(self, transport, variant, program, ranks=2):
        """Run once; returns (rows, None) or ([], why it failed)."""
        command = self.command(transport, variant, program, ranks)
        if self.options.verbose:
            say("    " + shlex.join(command))
        log = tempfile.TemporaryFile(mode="w+", dir=self.cleanup.scratch)
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=self.environment, start_new_session=True)
        self.cleanup.process = process
        try:
            process.wait(self.options.timeout)
            why = None if process.returncode == 0 else f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            why = f"no end after {self.options.timeout} s"
            self.cleanup.stop_process()
        self.cleanup.process = None
        log.seek(0)
        text = log.read()
        if why is not None:
            tail = "\n".join("      | " + line for line in text.strip().splitlines()[-12:] if not line.startswith("row,"))
            return [], f"{why}: {shlex.join(command)}\n{tail}"
        return [line.split(",")[1:] for line in text.splitlines() if line.startswith("row,")], None


def physical_cores():
    """Cores this process may use; two hardware threads of one core count once, as mpirun counts them."""
    allowed = os.sched_getaffinity(0)
    siblings = {read_first(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", str(cpu)) for cpu in allowed}
    return len(siblings)


def shared_memory_btl():
    """vader is called sm from Open MPI 5 on."""
    if shared_memory_btl.name is None:
        text = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True, check=False).stdout
        match = re.search(r"v(\d+)\.", text)
        shared_memory_btl.name = "sm" if match and int(match.group(1)) >= 5 else "vader"
    return shared_memory_btl.name


shared_memory_btl.name = None


def socket_options():
    """Room in the sockets for a message while its reader computes; only where the system allows more than its own default."""
    room = min(int(read_first("/proc/sys/net/core/rmem_max", "0")), int(read_first("/proc/sys/net/core/wmem_max", "0")), 4 << 20)
    if room < 1 << 20:
        return []
    return ["--mca", "btl_tcp_sndbuf", str(room), "--mca", "btl_tcp_rcvbuf", str(room)]


# ---------------------------------------------------------------------------------------------- results


@dataclass
class Series:
    """All runs of one variant for one measured value."""
    unit: str = ""
    medians: dict = field(default_factory=dict)  # pair -> median of its samples
    p99s: dict = field(default_factory=dict)

    def median(self):
        return statistics.median(self.medians.values())


class Results:
    """Rows of every run, and what the tables say about them."""

    columns = ["transport", "benchmark", "case", "bytes", "x", "metric", "unit", "variant", "pair", "samples", "median", "p10",
               "p90", "p99", "min", "max"]

    def __init__(self):
        self.rows = []
        self.series = {}
        self.steps = {}

    def add(self, transport, variant, pair, row):
        benchmark, case, size, x, metric, unit, samples, *values = row
        self.rows.append([transport, benchmark, case, size, x, metric, unit, variant, pair, samples, *values])
        key = (transport, benchmark, case, int(size), metric, self.step(transport, benchmark, case, variant, pair, x))
        series = self.series.setdefault(key, {}).setdefault(variant, Series(unit))
        series.medians[pair] = float(values[0])
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

    def brief(self, variants):
        """The table for the screen: medians only."""
        header = ["where", "what", "size", "unit"] + variants + [f"{v} vs {variants[0]}" for v in variants[1:]]
        lines = []
        for (transport, benchmark, case, size, metric, x), by_variant in self.series.items():
            if metric not in METRICS:
                continue
            unit = next(iter(by_variant.values())).unit
            label = size_text(size) + (", " + x_text(benchmark, x) if benchmark in WITH_X else "")
            line = [transport, f"{metric} {case}" if case != "-" else f"{benchmark} {metric}", label, unit]
            line += [number(by_variant[v].median()) if v in by_variant else "-" for v in variants]
            line += [compare(by_variant.get(variants[0]), by_variant.get(v), unit)[0] for v in variants[1:]]
            lines.append(line)
        return header, lines

    def table(self, variants):
        """Rows of text: one per measured value, with every variant and the ratio or difference to the first."""
        base = variants[0]
        header = ["transport", "benchmark", "case", "size", "metric", "unit"]
        for variant in variants:
            header += [variant, "min..max", "p99"]
        for variant in variants[1:]:
            header += [f"{variant} vs {base}", "min..max"]
        lines = []
        for (transport, benchmark, case, size, metric, x), by_variant in self.series.items():
            if metric not in METRICS:
                continue
            unit = next(iter(by_variant.values())).unit
            label = size_text(size) + (", " + x_text(benchmark, x) if benchmark in WITH_X else "")
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


def x_text(benchmark, x):
    return f"{x:.2f} transfers" if benchmark == "progress" else WITH_X[benchmark].format(x)


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


# ---------------------------------------------------------------------------------------------- plots


def import_matplotlib():
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "overlap"})
    import matplotlib.pyplot as pyplot
    return pyplot


def plot_all(results, variants, folder, footer):
    """One figure per benchmark and transport, as SVG and PNG; returns the paths without their ending."""
    pyplot = import_matplotlib()
    if pyplot is None:
        say("no plots: matplotlib is missing (Debian: python3-matplotlib)")
        return []
    groups = {}
    for (transport, benchmark, case, size, metric, x), by_variant in results.series.items():
        if metric in METRICS and benchmark not in ("rtr_usage", "waitprofile"):
            panel = (f"{case} {size_text(size)}" if benchmark in WITH_X else case, metric)
            groups.setdefault((transport, benchmark), {}).setdefault(panel, []).append((size, x, by_variant))
    paths = []
    for (transport, benchmark), panels in groups.items():
        columns = 2 if len(panels) > 1 else 1
        lines = (len(panels) + columns - 1) // columns
        figure, axes = pyplot.subplots(lines, columns, figsize=(5.2 * columns, 3.3 * lines + 0.4), squeeze=False)
        for axis in axes.flat[len(panels):]:
            axis.set_visible(False)
        for axis, ((case, metric), points) in zip(axes.flat, panels.items()):
            draw(axis, case, metric, points, variants, benchmark)
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
    by_x = benchmark in WITH_X
    labels = [f"{x:g}" if by_x else size_text(size) for size, x, _ in points]
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
        axis.set_xticks(range(0, len(labels), step), labels[::step], rotation=35 if not by_x else 0, fontsize=7)
        if by_x:
            axis.set_xlabel({"progress": "computation / transfer", "exchange": "communication / computation",
                             "matching": "messages", "crossing": "skew of the sender [us]"}[benchmark] + f" ({size_text(points[0][0])})")
    if (metric == "half_round_trip" or benchmark in ("matching", "exchange")) and len(points) > 1:
        axis.set_yscale("log")
    elif metric == "overlap":
        axis.set_ylim(-15, 105)
    else:
        axis.set_ylim(bottom=0)
    axis.set_title((case + ": " if case != "-" else "") + f"{metric.replace('_', ' ')} [{unit}]", fontsize=9)
    axis.legend(fontsize=7)


# ---------------------------------------------------------------------------------------------- the machine


def machine(options):
    """What must be known about a figure: machine, versions, parameters."""
    cpu = next((l.split(":", 1)[1].strip() for l in read_first("/proc/cpuinfo").splitlines() if l.startswith("model name")), "?")
    version = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    commit = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', read_first("/etc/os-release"), re.M)).get("PRETTY_NAME", "?")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{cpu}, {len(os.sched_getaffinity(0))} cores",
        "system": f"{release}, Linux {platform.release()}",
        "Open MPI": version,
        "commit": commit or "?",
        "load at start": " ".join(f"{l:.2f}" for l in os.getloadavg()),
        "pairs": str(options.pairs),
        "transports": " ".join(options.transports),
    }
    for name, arguments in options.variants.items():
        facts[f"variant {name}"] = arguments
    if "tcp" in options.transports:
        facts["tcp, all variants"] = " ".join(socket_options()) or "(no options: rmem_max or wmem_max below 1 MiB)"
    if "nodes" in options.transports:
        facts["nodes"] = f"{options.node_count} network namespaces, {options.rate} each (tbf), tcp_rmem and tcp_wmem start at 4 MiB"
    if COMPONENT_PATH in os.environ:
        facts["components from"] = os.environ[COMPONENT_PATH]
    if options.nice:
        facts["nice, all variants"] = str(options.nice)
    if options.mpirun:
        facts["mpirun, all variants"] = options.mpirun
    return facts


# ---------------------------------------------------------------------------------------------- main


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a subset of benchmarks and sizes")
    parser.add_argument("--benchmarks", metavar="A,B", help=f"of: {' '.join(BENCHMARKS)}")
    parser.add_argument("--transports", metavar="A,B", default="vader", help="of: vader tcp nodes (default: vader)")
    parser.add_argument("--variants", metavar="A,B", default="ob1,speculative",
                        help=f"of: {' '.join(VARIANTS)} (default: ob1,speculative); the first is the reference")
    parser.add_argument("--variant", metavar="NAME=ARGS", action="append", default=[], help="another variant: mpirun arguments")
    parser.add_argument("--pairs", type=int, default=5, help="how often each variant runs (default and least for figures: 5)")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="folder of the results (default: bench-results)")
    parser.add_argument("--build", type=Path, default=HERE / "build", help="folder of the programs; built when missing or old")
    parser.add_argument("--profile", metavar="PROGRAM", help="run this program (with arguments) instead of the benchmarks and compare "
                        "the time it waits in MPI")
    parser.add_argument("--np", type=int, default=2, help="ranks for --profile (default: 2)")
    parser.add_argument("--rate", default="1gbit", help="rate of the simulated nodes (default: 1gbit)")
    parser.add_argument("--nice", type=int, default=0, metavar="N", help="priority of all variants on a busy machine (root: -19 to 19; "
                        "default: 0)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run of one program (default: 120)")
    parser.add_argument("--mpirun", metavar="ARGS", default="", help="arguments for mpirun in all variants")
    parser.add_argument("--args", metavar="ARGS", default=None, help="arguments for the programs instead of those built in")
    parser.add_argument("--brief", action="store_true", help="a narrow table on the screen; the files hold everything")
    parser.add_argument("--no-plots", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="show every command")
    options = parser.parse_args(arguments)

    extra = dict(v.split("=", 1) if "=" in v else parser.error(f"--variant {v}: expected NAME=ARGS") for v in options.variant)
    names = [v for v in options.variants.split(",") if v] + [v for v in extra if v not in options.variants.split(",")]
    known = dict(VARIANTS, **extra)
    for name in names:
        if name not in known:
            parser.error(f"no variant '{name}'; there are: {' '.join(known)}")
    options.variants = {name: known[name] for name in names}
    options.benchmarks = options.benchmarks.split(",") if options.benchmarks else (QUICK if options.quick else list(BENCHMARKS))
    for name in options.benchmarks:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark '{name}'; there are: {' '.join(BENCHMARKS)}")
    options.transports = options.transports.split(",")
    for name in options.transports:
        if name not in ("vader", "tcp", "nodes"):
            parser.error(f"no transport '{name}'; there are: vader tcp nodes")
    if "nodes" in options.transports and os.geteuid() != 0:
        say("nodes: left out, network namespaces need root")
        options.transports.remove("nodes")
    if options.pairs < 1:
        parser.error("--pairs must be 1 or more")
    options.node_count = options.np if options.profile else 2
    return options


def arguments_for(benchmark, transport, options):
    if options.args is not None:
        return shlex.split(options.args)
    if options.quick:
        return shlex.split(benchmark.nodes_quick if transport == "nodes" and benchmark.nodes_quick else benchmark.quick)
    text = shlex.split(benchmark.full)
    if transport == "nodes" and benchmark.nodes:
        # later options win over earlier ones of the same name
        pairs = dict(zip(text[::2], text[1::2]))
        extra = shlex.split(benchmark.nodes)
        pairs.update(zip(extra[::2], extra[1::2]))
        text = [word for pair in pairs.items() for word in pair]
    return text


def calibration(runner, transport, variant, program):
    """Communication time of the first variant, so that all variants compute for the same time."""
    rows, _ = runner.rows(transport, variant, program + ["--calibrate", "1"])
    times = [float(row[7]) for row in rows if row[4] == "communication"]
    return ["--comm-us", str(statistics.mean(times))] if times else []


def measure_profile(options, runner, results):
    """The wait-time profile of a program of the user; returns what failed."""
    failures = []
    options.mpirun += f" -x LD_PRELOAD={options.build / 'libwaitprofile.so'} -x WAITPROFILE_ROWS=1"
    for transport in options.transports:
        for pair in range(options.pairs):
            for variant in list(options.variants)[::1 if pair % 2 == 0 else -1]:
                begin = time.monotonic()
                rows, why = runner.rows(transport, variant, shlex.split(options.profile), options.np)
                say(f"  {transport:6} profile        {pair + 1}/{options.pairs}  {variant:14} {time.monotonic() - begin:5.1f} s" +
                    ("" if why is None else f"  FAILED, {why}"))
                if why is not None:
                    failures.append((transport, "profile", variant, why))
                for row in rows:
                    results.add(transport, variant, pair, row)
    return failures


def measure(options, runner, results):
    """Run everything; returns what failed."""
    failures = []
    names = list(options.variants)
    for transport in options.transports:
        for name in options.benchmarks:
            benchmark = BENCHMARKS[name]
            program = [str(options.build / benchmark.program)] + arguments_for(benchmark, transport, options)
            if benchmark.calibrate:
                program += calibration(runner, transport, names[0], program)
            broken = []
            for pair in range(options.pairs):
                order = names if pair % 2 == 0 else names[::-1]
                for variant in order:
                    if broken.count(variant) >= 2:
                        continue
                    begin = time.monotonic()
                    rows, why = runner.rows(transport, variant, program)
                    spent = time.monotonic() - begin
                    say(f"  {transport:6} {name:14} {pair + 1}/{options.pairs}  {variant:14} {spent:5.1f} s" +
                        ("" if why is None else f"  FAILED, {why}"))
                    if why is not None:
                        failures.append((transport, name, variant, why))
                        broken.append(variant)
                    for row in rows:
                        results.add(transport, variant, pair, row)
    return failures


def main():
    options = parse(sys.argv[1:])
    for tool in ("mpirun", "ompi_info"):
        if shutil.which(tool) is None:
            sys.exit(f"run.py: {tool} not found (Debian: openmpi-bin)")
    if COMPONENT_PATH not in os.environ and (ROOT / "_install" / "env.sh").exists():
        os.environ[COMPONENT_PATH] = f"{ROOT}/_install/lib/openmpi:SYSTEM_DEFAULT:USER_DEFAULT"
    needed = {"waitprofile"} if options.profile else {BENCHMARKS[name].program for name in options.benchmarks}
    subprocess.run(["sh", str(HERE / "build.sh"), str(options.build), *sorted(needed)], check=True)
    options.build = options.build.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    facts = machine(options)
    for key, value in facts.items():
        say(f"{key}: {value}")
    if os.getloadavg()[0] > physical_cores():
        say("the machine is busy with other things: the figures will be noisy (--nice helps a little)")
    say()

    results = Results()
    runner = Runner(options, Cleanup())
    failures = (measure_profile if options.profile else measure)(options, runner, results)
    names = list(options.variants)
    header, lines = results.table(names)
    preface = "".join(f"{key}: {value}\n" for key, value in facts.items())
    text, markdown = as_text(header, lines), as_markdown(header, lines)
    judged = figures(results, names)
    if judged[1]:
        text += "\n" + as_text(*judged)
        markdown += "\n" + as_markdown(*judged)
    results.write_csv(options.out / "results.csv")
    (options.out / "results.txt").write_text(preface + "\n" + text)
    (options.out / "results.md").write_text("".join(f"- {l}\n" for l in preface.splitlines()) + "\n" + markdown)
    plots = [] if options.no_plots else plot_all(results, names, options.out,
                                                 f"{facts['machine']}; {facts['Open MPI']}; {facts['date']}; {facts['commit']}")
    say("\n" + (as_text(*results.brief(names), left=3) if options.brief else text))
    say(f"results in {options.out}/results.csv, .txt, .md")
    for path in plots:
        say(f"  {path}.svg  {path}.png")
    for transport, name, variant, why in failures:
        say(f"FAILED: {transport} {name} {variant}: {why.splitlines()[0]}")
    return 1 if failures else 0


if __name__ == "__main__":
    # an interpreter without matplotlib gives way to the system's, which Debian's package serves
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3") and import_matplotlib() is None:
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    sys.exit(main())
