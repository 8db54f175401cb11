"""Run every benchmark for every variant, in turning order."""
import shlex
import statistics
import time

from .catalogue import BENCHMARKS
from .options import arguments_for
from .text import say


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
