# SPDX-License-Identifier: BSD-3-Clause
"""What must be known about a figure: machine, versions, parameters."""
import datetime
import os
import platform
import re
import shutil
import subprocess

from .catalogue import BENCHMARKS, COMPUTES, SOFT, names_on
from .runner import COMPONENT_PATH, ROOT, socket_options, variant_arguments
from .text import read_first


def machine(options):
    """What must be known about a figure: machine, versions, parameters."""
    cpu = next((l.split(":", 1)[1].strip() for l in read_first("/proc/cpuinfo").splitlines() if l.startswith("model name")), "?")
    version = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    commit = ""
    if shutil.which("git") is not None:
        commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True,
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
    computing = sorted({b for t in options.transports for b in names_on(t, options.benchmarks) if BENCHMARKS[b].computes})
    if computing and not options.vm and not options.profile:
        facts[f"computation of {', '.join(computing)}"] = COMPUTES[options.compute]
    used = {v: variant_arguments(options, v) for t in options.transports for b in names_on(t, options.benchmarks)
            for v in BENCHMARKS[b].variants or options.variants if v in options.known}
    for name, arguments in ({} if options.vm else used or options.variants).items():
        facts[f"variant {name}"] = arguments
    for name in options.transports:
        if name in SOFT:
            facts[name] = "btl/ring on its software device, {} MB/s, {} ns one way".format(*SOFT[name])
    if "tcp" in options.transports:
        facts["tcp, all variants"] = " ".join(socket_options()) or "(no options: rmem_max or wmem_max below 1 MiB)"
    if "nodes" in options.transports:
        facts["nodes"] = f"{options.node_count} network namespaces, {options.rate} each (tbf), tcp_rmem and tcp_wmem start at 4 MiB"
    if COMPONENT_PATH in os.environ:
        facts["components from"] = os.environ[COMPONENT_PATH]
    if options.wait_quiet:
        facts["waited for a quiet machine"] = f"up to {options.wait_quiet:g} s before each run"
    if options.nice:
        facts["nice, all variants"] = str(options.nice)
    if options.mpirun:
        facts["mpirun, all variants"] = options.mpirun
    return facts
