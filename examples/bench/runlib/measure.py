# SPDX-License-Identifier: BSD-3-Clause
"""Run every benchmark for every variant, in turning order."""
import shlex
import statistics
import time
from dataclasses import dataclass, field, replace

from .catalogue import BENCHMARKS, NAMED, Benchmark, is_tool, names_on
from .options import arguments_for
from .text import say


def calibration(runner, transport, variant, program):
    """Communication time of the first variant, so that all variants compute for the same time."""
    rows, _ = runner.rows(transport, variant, program + ["--calibrate", "1"], Benchmark(""))
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
                rows, why = runner.rows(transport, variant, shlex.split(options.profile), Benchmark("", ranks=options.np))
                say(f"  {transport:6} profile        {pair + 1}/{options.pairs}  {variant:14} {time.monotonic() - begin:5.1f} s" +
                    ("" if why is None else f"  FAILED, {why}"))
                if why is not None:
                    failures.append((transport, "profile", variant, why))
                for row in rows:
                    results.add(transport, options.variants, variant, pair, row)
    return failures


def run_pair(runner, results, plan, pair):
    """Every variant once; returns what failed."""
    failures = []
    for variant in plan.names if pair % 2 == 0 else plan.names[::-1]:
        if plan.broken.count(variant) >= 2:
            continue
        begin = time.monotonic()
        rows, why = runner.rows(plan.transport, variant, plan.program, plan.benchmark)
        say(f"  {plan.transport:9} {plan.name:20} {pair + 1}/{runner.options.pairs}  {variant:14} {time.monotonic() - begin:5.1f} s" +
            ("" if why is None else f"  FAILED, {why}"))
        if why is not None:
            failures.append((plan.transport, plan.name, variant, why))
            plan.broken.append(variant)
        for row in rows:
            results.add(plan.transport, plan.names, variant, pair, row, plan.name if plan.name in NAMED else None)
    return failures


@dataclass
class Plan:
    """One benchmark on one transport."""
    transport: str
    name: str
    names: list
    program: list
    benchmark: Benchmark
    broken: list = field(default_factory=list)  # a variant for each time that it failed


def plan_of(options, runner, transport, name):
    benchmark = BENCHMARKS[name]
    if benchmark.any_ranks:
        benchmark = replace(benchmark, ranks=options.np)
    names = list(benchmark.variants or options.variants)
    program = [benchmark.program if is_tool(benchmark) else str(options.build / benchmark.program)]
    program += arguments_for(benchmark, transport, options)
    if benchmark.calibrate:
        program += calibration(runner, transport, names[0], program)
    return Plan(transport, name, names, program, benchmark)


def measure(options, runner, results):
    """Run everything; returns what failed."""
    failures = []
    for transport in options.transports:
        for name in names_on(transport, options.benchmarks):
            try:
                plan = plan_of(options, runner, transport, name)
                for pair in range(1 if is_tool(plan.benchmark) else options.pairs):
                    failures += run_pair(runner, results, plan, pair)
            except SystemExit as stopped:  # by a signal: what is there is still told
                return failures + [(transport, name, "-", f"stopped, exit code {stopped.code}")]
    return failures
