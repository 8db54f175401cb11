# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""
import argparse
import os
import shlex
from pathlib import Path

from .catalogue import BENCHMARKS, COMPUTES, QUICK, TRANSPORTS, VARIANTS, names_on, preloads_thread
from .text import say

HERE = Path(__file__).resolve().parent.parent


def parse(arguments, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a subset of benchmarks and sizes")
    parser.add_argument("--benchmarks", metavar="A,B", help=f"of: {' '.join(BENCHMARKS)}")
    parser.add_argument("--transports", metavar="A,B", default="vader", help=f"of: {' '.join(TRANSPORTS)} (default: vader); soft and "
                        "soft_fast are btl/ring on its software device with 1 GB/s, 5 us and 12 GB/s, 1 us")
    parser.add_argument("--variants", metavar="A,B", default="ob1,speculative",
                        help=f"of: {' '.join(VARIANTS)} (default: ob1,speculative); the first is the reference")
    parser.add_argument("--variant", metavar="NAME=ARGS", action="append", default=[], help="another variant: mpirun arguments")
    parser.add_argument("--compute", choices=list(COMPUTES), default="spin", help="how ranks compute: spin on their cores, or sleep, "
                        "which stands for a computation on another core, so that whatever makes progress has one to spare; leaves out "
                        f"benchmarks other than {' '.join(name for name in BENCHMARKS if BENCHMARKS[name].computes)} (default: spin)")
    parser.add_argument("--pairs", type=int, default=5, help="how often each variant runs (default and least for figures: 5)")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="folder of the results (default: bench-results)")
    parser.add_argument("--build", type=Path, default=HERE / "build", help="folder of the programs; built when missing or old")
    parser.add_argument("--profile", metavar="PROGRAM", help="run this program (with arguments) instead of the benchmarks and compare "
                        "the time it waits in MPI")
    parser.add_argument("--vm", metavar="FILE", type=Path, help="take in what vm_job.sh has printed in a virtual machine (or on another "
                        "machine with an RDMA device), instead of running anything")
    parser.add_argument("--np", type=int, default=2, help="ranks for --profile and async (default: 2)")
    parser.add_argument("--rate", default="1gbit", help="rate of the simulated nodes (default: 1gbit)")
    parser.add_argument("--nice", type=int, default=0, metavar="N", help="priority of all variants on a busy machine (root: -19 to 19; "
                        "default: 0)")
    parser.add_argument("--wait-quiet", type=float, default=0, metavar="S", help="wait up to S seconds before each run until nobody else "
                        "computes (default: 0)")
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
    options.known = known
    options.variants = {name: known[name] for name in names}
    for name, arguments in options.variants.items():
        if options.profile and preloads_thread(arguments):
            parser.error(f"--profile: variant {name} loads another library in place of the profile's")
    options.benchmarks = options.benchmarks.split(",") if options.benchmarks else (QUICK if options.quick else list(BENCHMARKS))
    for name in options.benchmarks:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark '{name}'; there are: {' '.join(BENCHMARKS)}")
    if options.compute != "spin":
        options.benchmarks = [name for name in options.benchmarks if BENCHMARKS[name].computes]
        if options.profile or options.vm or not options.benchmarks:
            parser.error(f"--compute is for {' '.join(name for name in BENCHMARKS if BENCHMARKS[name].computes)}")
    options.transports = options.transports.split(",")
    for name in options.transports:
        if name not in TRANSPORTS:
            parser.error(f"no transport '{name}'; there are: {' '.join(TRANSPORTS)}")
    if not options.profile and not options.vm and not any(names_on(t, options.benchmarks) for t in options.transports):
        parser.error(f"none of these benchmarks runs on {' '.join(options.transports)}")
    if "nodes" in options.transports and os.geteuid() != 0:
        say("nodes: left out, network namespaces need root")
        options.transports.remove("nodes")
    if options.pairs < 1:
        parser.error("--pairs must be 1 or more")
    if options.np < 1 or (options.np < 2 and not options.profile):
        parser.error("--np must be 2 or more, 1 or more for --profile")
    scales = any(BENCHMARKS[name].any_ranks for name in names_on("nodes", options.benchmarks))
    options.node_count = options.np if options.profile or scales else 2
    return options


def arguments_for(benchmark, transport, options):
    """Arguments of the program: those built in or --args, and how it computes."""
    compute = ["--compute", options.compute] if benchmark.computes and options.compute != "spin" else []
    if options.args is not None:
        return shlex.split(options.args) + compute
    return built_in(benchmark, transport, options.quick) + compute


def built_in(benchmark, transport, quick):
    if quick:
        return shlex.split(benchmark.nodes_quick if transport == "nodes" and benchmark.nodes_quick else benchmark.quick)
    text = shlex.split(benchmark.full)
    if transport == "nodes" and benchmark.nodes:
        # later options win over earlier ones of the same name
        pairs = dict(zip(text[::2], text[1::2]))
        extra = shlex.split(benchmark.nodes)
        pairs.update(zip(extra[::2], extra[1::2]))
        text = [word for pair in pairs.items() for word in pair]
    return text
