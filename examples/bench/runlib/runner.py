# SPDX-License-Identifier: BSD-3-Clause
"""Start mpirun for one variant on one transport; what must not stay behind afterwards."""
import atexit
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .catalogue import SOFT, is_tool
from .text import read_first, say

ROOT = Path(__file__).resolve().parent.parent.parent.parent
COMPONENT_PATH = "OMPI_MCA_mca_base_component_path"
NODES = ROOT / "test" / "support" / "nodes" / "nodes.sh"


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

    def command(self, transport, variant, program, benchmark):
        if is_tool(benchmark):
            return program
        ranks = benchmark.ranks
        arguments = shlex.split(variant_arguments(self.options, variant)) + shlex.split(benchmark.mpirun.format(build=self.options.build))
        is_ucx = "ucx" in arguments
        if transport == "nodes":
            if self.cleanup.nodes_dir is None:
                self.make_nodes()
            start = [str(NODES), "run", self.cleanup.nodes_dir, "-n", str(ranks)]
            where = ["--mca", "btl", "tcp,self"] if not is_ucx else ["-x", "UCX_TLS=tcp,self"]
        elif transport in SOFT:
            # Two ranks that spin on one core take turns of 4 ms; the device goes where it likes. Too many for that: who waits gives way.
            start = ["mpirun", "-n", str(ranks)]
            start += ["--bind-to", "core"] if ranks <= self.cores else ["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
            bandwidth, latency = SOFT[transport]
            where = ["--mca", "btl", "ring,self", "--mca", "btl_ring_fabric", "soft", "--mca", "btl_ring_soft_bandwidth", str(bandwidth),
                     "--mca", "btl_ring_soft_latency", str(latency)]
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

    def wait_for_quiet(self):
        """Let other work on this machine pass, as long as the user says."""
        end = time.monotonic() + self.options.wait_quiet
        while time.monotonic() < end and idle_share(0.25) < 0.9:
            time.sleep(0.25)

    def rows(self, transport, variant, program, benchmark):
        """Run once; returns (rows, None) or ([], why it failed)."""
        command = self.command(transport, variant, program, benchmark)
        if self.options.verbose:
            say("    " + shlex.join(command))
        if self.options.wait_quiet:
            self.wait_for_quiet()
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


def variant_arguments(options, variant):
    """Arguments of mpirun; the user's may hold other braces."""
    return options.known[variant].replace("{build}", shlex.quote(str(options.build)))


def idle_share(seconds):
    """How much of the processors' time nobody wants, seen for so long."""
    def times():
        return [int(word) for word in read_first("/proc/stat").split("\n")[0].split()[1:]]

    before = times()
    time.sleep(seconds)
    spent = [now - then for now, then in zip(times(), before)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)


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
