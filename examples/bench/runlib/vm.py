# SPDX-License-Identifier: BSD-3-Clause
"""Results of vm_job.sh, which runs where there is an RDMA device (in a virtual machine with Soft-RoCE) and prints lines

    vm,BENCHMARK,VARIANTS,VARIANT,PAIR,row,...      VARIANTS with a + between them, the reference first
    fact,NAME,VALUE
    failed,BENCHMARK,VARIANT,WHY
"""
from .text import say


def take_in(results, path, facts):
    """Read such a file, whatever else is in it; returns what failed."""
    failures = []
    facts["measured where"] = str(path)
    for line in path.read_text(errors="replace").splitlines():
        word, *fields = line.strip().split(",")
        if word == "vm" and len(fields) > 4 and fields[4] == "row":
            name, names, variant, pair, _row, *row = fields
            results.add("vm", names.split("+"), variant, int(pair), row, name)
        elif word == "fact" and len(fields) > 1:
            facts[f"there, {fields[0]}"] = ",".join(fields[1:])
        elif word == "failed" and len(fields) > 2:
            failures.append(("vm", fields[0], fields[1], ",".join(fields[2:])))
    if not results.rows:
        say(f"run.py: no results in {path}")
        failures.append(("vm", "-", "-", "no results"))
    return failures
