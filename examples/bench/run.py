#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the benchmarks for several variants of Open MPI, interleaved, and write CSV, tables and plots.

A variant is a set of mpirun arguments: ob1, speculative, ucx, or NAME='ARGS', where {build} is the folder of the programs. ob1_thread is
ob1 with the usual cure, a thread per rank that polls (libprogressthread.so); speculative_off has no interrupt thread. For each benchmark
and transport the variants run one after the other, in turning order, at least five times; the first variant is what the others are
compared with, run by run. Python 3 standard library; plots need python3-matplotlib.
"""
import os
import shutil
import subprocess
import sys

from runlib.catalogue import BENCHMARKS, COMPUTES, is_tool, names_on, preloads_thread
from runlib.figures import figures
from runlib.machine import machine
from runlib.measure import measure, measure_profile
from runlib.options import HERE, parse
from runlib.plots import import_matplotlib, plot_all
from runlib.results import Results
from runlib.runner import COMPONENT_PATH, ROOT, Cleanup, Runner, physical_cores
from runlib.text import as_markdown, as_text, say
from runlib.vm import take_in


def build_programs(options):
    names = {name for transport in options.transports for name in names_on(transport, options.benchmarks)}
    needed = {BENCHMARKS[name].program for name in names if not is_tool(BENCHMARKS[name])}
    needed.update(program for name in names for program in BENCHMARKS[name].also)
    if options.profile:
        needed = {"waitprofile"}
    used = {variant for name in names for variant in BENCHMARKS[name].variants} | set(options.variants)
    if any(preloads_thread(options.known.get(variant, "")) for variant in used):
        needed.add("progress_thread")
    subprocess.run(["sh", str(HERE / "build.sh"), str(options.build), *sorted(needed)], check=True)
    options.build = options.build.resolve()


def main():
    options = parse(sys.argv[1:], __doc__)
    for tool in ("mpirun", "ompi_info"):
        if not options.vm and shutil.which(tool) is None:
            sys.exit(f"run.py: {tool} not found (Debian: openmpi-bin)")
    if COMPONENT_PATH not in os.environ and (ROOT / "_install" / "env.sh").exists():
        os.environ[COMPONENT_PATH] = f"{ROOT}/_install/lib/openmpi:SYSTEM_DEFAULT:USER_DEFAULT"
    if not options.vm:
        build_programs(options)
    options.out.mkdir(parents=True, exist_ok=True)
    facts = machine(options)
    for key, value in facts.items():
        say(f"{key}: {value}")
    if os.getloadavg()[0] > physical_cores():
        say("the machine is busy with other things: the figures will be noisy (--nice helps a little)")
    say()

    results = Results(options.compute)
    if options.vm:
        failures = take_in(results, options.vm, facts)
    else:
        failures = (measure_profile if options.profile else measure)(options, Runner(options, Cleanup()), results)
    tables = results.tables()
    preface = "".join(f"{key}: {value}\n" for key, value in facts.items())
    judged = figures(results) if options.compute == "spin" else ([], [])  # the figures to reach are those of busy cores
    judged = [judged] if judged[1] else []
    text = "\n".join(as_text(*table) for table in tables + judged)
    markdown = "\n".join(as_markdown(*table) for table in tables + judged)
    results.write_csv(options.out / "results.csv")
    (options.out / "results.txt").write_text(preface + "\n" + text)
    (options.out / "results.md").write_text("".join(f"- {l}\n" for l in preface.splitlines()) + "\n" + markdown)
    footer = f"{facts['machine']}; {facts['Open MPI']}; {facts['date']}; {facts['commit']}"
    if options.compute != "spin":
        footer += f"; computation: {COMPUTES[options.compute]}"
    plots = [] if options.no_plots else plot_all(results, options.out, footer)
    say("\n" + ("\n".join(as_text(*table, left=3) for table in results.briefs()) if options.brief else text))
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
