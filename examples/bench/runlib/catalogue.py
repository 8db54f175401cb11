# SPDX-License-Identifier: BSD-3-Clause
"""What there is to measure: variants of Open MPI, transports, benchmarks with their arguments."""
from dataclasses import dataclass

# Arguments of mpirun; {build} is the folder of the programs. A rank and its thread mostly share a core: where they do not yield it to
# each other while they poll, a message takes time slices of the system, 100 times its transfer.
THREAD = "--mca mpi_yield_when_idle 1 -x LD_PRELOAD={build}/libprogressthread.so"
VARIANTS = {
    "ob1": "--mca pml ob1",
    "ob1_thread": f"--mca pml ob1 {THREAD}",  # a thread per rank that polls
    "ob1_tcp_thread": "--mca pml ob1 --mca btl_tcp_progress_thread 1",  # Open MPI's own, over tcp
    "speculative": "--mca pml speculative",
    "eager_flag": "--mca pml speculative --mca pml_speculative_hazard_control eager_flag",
    "no_adaptation": "--mca pml speculative --mca pml_speculative_adaptation 0",
    "no_speculation": "--mca pml speculative --mca pml_speculative_speculation 0",
    # every large message is announced, with and without a thread that answers
    "no_speculation_off": "--mca pml speculative --mca pml_speculative_speculation 0 --mca common_overlap_progress off",
    "speculative_off": "--mca pml speculative --mca common_overlap_progress off",
    "speculative_on": "--mca pml speculative --mca common_overlap_progress on",  # through shared memory on a full node, too
    "ucx": "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any",
    # on btl/ring: its rings, its send/receive channel alone, its rings with every message copied
    "ring": "--mca pml speculative",
    "channel": "--mca pml speculative --mca btl_ring_rings off",
    "copied": "--mca pml speculative --mca btl_ring_frequent 0",
    "newrma": "--mca pml speculative",
    "mq": "--mca pml speculative --mca coll_mq_priority 100",
    "mq_on": "--mca pml speculative --mca coll_mq_priority 100 --mca common_overlap_progress on",
    "newrma_on": "--mca pml speculative --mca common_overlap_progress on",
    "newrma_off": "--mca pml speculative --mca common_overlap_progress off",
    # Open MPI's own; not each of them makes every window
    "osc_rdma": "--mca pml ob1 --mca osc rdma",
    "osc_sm": "--mca pml ob1 --mca osc sm",
    "osc_pt2pt": "--mca pml ob1 --mca osc pt2pt",
    "osc_ucx": "--mca pml ucx --mca osc ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any",
}
# How a computation passes (--compute), as the results say it.
COMPUTES = {
    "spin": "spin: on the rank's own core (none to spare where there are as many ranks as cores)",
    "sleep": "sleep: the ranks sleep instead, which stands for a computation on another core (a core to spare)",
}
SLOTS = ("slots_100", "slots_5", "slots_10", "slots_25", "slots_50")
VARIANTS.update({name: f"--mca pml speculative --mca btl_ring_ring_slots {name.split('_')[1]}" for name in SLOTS})

# Modelled wires of btl/ring's software device: (MB/s, ns one way).
SOFT = {"soft": (1000, 5000), "soft_fast": (12000, 1000)}
BTLS = ("vader", "tcp", "nodes")
TRANSPORTS = (*BTLS, *SOFT)


@dataclass(frozen=True)
class Benchmark:
    """One program of this folder: its arguments, those of --quick, and what is added or changed between simulated nodes."""
    program: str
    full: str = ""
    quick: str = ""
    nodes: str = ""
    nodes_quick: str = ""
    on: tuple = BTLS         # the transports that it belongs to
    variants: tuple = ()     # of its own; the first is the reference
    ranks: int = 2
    any_ranks: bool = False  # as many as --np says
    mpirun: str = ""         # for all variants; {build} is the folder of the programs
    also: tuple = ()         # programs to build besides
    computes: bool = False   # knows --compute
    calibrate: bool = False  # measure the communication time of the first variant before and give it to all (--comm-us)


BENCHMARKS = {
    "pingpong": Benchmark("pingpong", "--budget-ms 80", "--sizes 0,8,512,4k,64k,1m,4m --budget-ms 40", "",
                          "--sizes 8,4k,64k,1m --budget-ms 60"),
    "message_rate": Benchmark("message_rate", "", "--budget-ms 150"),
    "bandwidth": Benchmark("bandwidth", "--budget-ms 100", "--sizes 64k,256k,1m,4m --budget-ms 40", "--samples 10",
                           "--sizes 64k,1m --samples 5 --window 4"),
    "stream": Benchmark("bandwidth", "--blocking 1 --window 100 --sizes 8..1m --budget-ms 100",
                        "--blocking 1 --window 100 --sizes 8,512,4k,16k,32000,64k,256k --budget-ms 40", "--blocking 1 --samples 10",
                        "--blocking 1 --sizes 64k,1m --samples 5 --window 4"),
    "overlap": Benchmark("overlap", "--budget-ms 60", "--sizes 64k,256k,1m,4m --budget-ms 25", "--lead-us 2000 --budget-ms 300",
                         "--lead-us 2000 --sizes 256k,512k,1m --budget-ms 30", computes=True),
    "progress": Benchmark("overlap", "--progress 1 --sizes 1m --budget-ms 20", "--progress 1 --sizes 1m --budget-ms 8",
                          "--lead-us 2000 --budget-ms 120", "--progress 1 --sizes 1m --lead-us 2000 --budget-ms 60", computes=True),
    "exchange_128k": Benchmark("exchange", "--sizes 128k", "--sizes 128k --budget-ms 30", "--budget-ms 150", computes=True,
                               calibrate=True),
    "exchange_1m": Benchmark("exchange", "--sizes 1m", "--sizes 1m --budget-ms 30", "--iterations 20", computes=True,
                             calibrate=True),
    "several": Benchmark("several", "", "--sizes 16k --messages 2,16 --budget-ms 40", on=("vader",)),
    "crossing": Benchmark("crossing", "", "--sizes 1k,128k,1m --budget-ms 60", "--budget-ms 200 --skews-ns 0,2000,5000,10000",
                          "--sizes 1k,128k,1m --skews-ns 0,2000,5000,10000"),
    "onesided_allocated": Benchmark("onesided", "", "--sizes 8,4k,64k --budget-ms 30", on=("vader",),
                                    variants=("ob1", "osc_rdma", "osc_ucx", "newrma")),
    "onesided_created": Benchmark("onesided", "--memory created", "--memory created --sizes 8,4k,64k --budget-ms 30", on=("vader",),
                                  variants=("ob1", "osc_pt2pt", "osc_ucx", "newrma")),
    "icollectives": Benchmark("icollectives", "", "--sizes 8,64k --budget-ms 80", "--budget-ms 600", "--sizes 8,64k --budget-ms 300",
                              on=TRANSPORTS, variants=("ob1", "speculative_on", "mq", "mq_on"), any_ranks=True, ranks=4, computes=True),
    "rma_rate_allocated": Benchmark("rma_rate", "", "--sizes 8,4k,64k,1m --budget-ms 20", on=("vader",), ranks=3,
                                    variants=("osc_sm", "osc_rdma", "osc_ucx", "newrma")),
    "rma_rate_created": Benchmark("rma_rate", "--memory created", "--memory created --sizes 8,4k,64k,1m --budget-ms 20",
                                  on=("vader",), ranks=3, variants=("osc_rdma", "osc_pt2pt", "osc_ucx", "newrma")),
    "rma_blocks": Benchmark("rma_blocks", "", "--budget-ms 60", on=("vader",),
                            variants=("osc_rdma", "osc_pt2pt", "newrma")),
    "rma_rate_nodes": Benchmark("rma_rate", "", "", "--memory created --sizes 8,4k,64k,1m --budget-ms 100",
                                "--memory created --sizes 8,64k,1m --budget-ms 40", on=("nodes",), ranks=2,
                                variants=("osc_pt2pt", "newrma")),
    **{f"rma_lock_{ranks}": Benchmark("rma_lock", "--budget-ms 1500", "--repeats 2 --budget-ms 800", on=("vader",), ranks=ranks,
                                      variants=("osc_rdma", "osc_sm", "osc_pt2pt", "newrma")) for ranks in (2, 4, 8)},
    "rma_patterns": Benchmark("rma_patterns", "", "--sizes 8,1m --samples 15", "--late-us 5000 --work-us 15000 --samples 20",
                              "--sizes 128k --late-us 5000 --work-us 15000 --samples 10", on=("vader", "nodes"), computes=True,
                              variants=("osc_pt2pt", "newrma", "newrma_on", "newrma_off")),
    "threads": Benchmark("threads", "", "--budget-ms 150 --samples 5", variants=("ob1", "speculative")),
    "matching": Benchmark("matching", "", "--budget-ms 100 --samples 20"),
    "rtr_usage": Benchmark("rtr_usage", "", "--messages 100", "--messages 60"),
    "halo": Benchmark("halo", "--sizes 256k,1m", "--sizes 1m --budget-ms 300", "", "--sizes 1m --budget-ms 1000", on=TRANSPORTS,
                      computes=True),
    "async": Benchmark("async", "", "--sizes 1m --budget-ms 40", "--budget-ms 300", "--sizes 1m --budget-ms 150", on=TRANSPORTS,
                       any_ranks=True, computes=True),
}

# A slot that holds 8 KiB, for comparisons up to there.
WIDE = "--mca btl_ring_slot_bytes 12288 --mca btl_ring_channel_bytes 12288"
RING = ("channel", "ring")
FREQUENT = ("copied", "ring")
WAKES = ("ring", "woken")
VARIANTS["woken"] = "--mca pml speculative --mca common_overlap_progress on"
BENCHMARKS.update({
    "soft_overlap": Benchmark("overlap", "--sizes 64k..4m --lead-us 300 --budget-ms 120", "--sizes 64k,1m,4m --lead-us 300 --budget-ms 60",
                              on=tuple(SOFT), variants=("ob1", "speculative"), computes=True),
    "ring_latency": Benchmark("pingpong", "--sizes 8..8k --budget-ms 120", "--sizes 8,1k,8k --budget-ms 60", on=("soft",), variants=RING,
                              mpirun=WIDE),
    "ring_rate": Benchmark("message_rate", "--window 100 --budget-ms 300", "--window 100 --budget-ms 100", on=("soft",), variants=RING),
    "ring_bandwidth": Benchmark("bandwidth", "--sizes 8..8k --window 100 --budget-ms 100", "--sizes 1k --window 100 --budget-ms 60",
                                on=("soft",), variants=RING, mpirun=WIDE),
    "ring_overhead": Benchmark("overhead", "--sizes 8,128,1k,8k --budget-ms 300", "--sizes 8,1k --budget-ms 100", on=("soft",), variants=RING,
                               mpirun=WIDE),
    "ring_components": Benchmark("message_rate", "--window 100 --budget-ms 2000", "--window 100 --budget-ms 500", on=("soft",), variants=RING,
                                 mpirun="-x LD_PRELOAD={build}/libsampler.so", also=("sampler",)),
    "ring_slots": Benchmark("bandwidth", "--sizes 8,256,1k --window 100 --budget-ms 80", "--sizes 8 --window 100 --budget-ms 40",
                            on=("soft",), variants=SLOTS),
    # What it costs that a thread of the receiver may sleep.
    "ring_wakes": Benchmark("bandwidth", "--sizes 4k,64k --budget-ms 300", "--sizes 4k,64k --budget-ms 100", on=("soft_fast",), variants=WAKES),
    "ring_collectives": Benchmark("collectives", "--budget-ms 150", "--sizes 8,1k --budget-ms 50", on=("soft",), variants=RING, ranks=4),
    "frequent_latency": Benchmark("pingpong", "--sizes 128..8k --budget-ms 200", "--sizes 128,8k --budget-ms 80", on=("soft",),
                                  variants=FREQUENT, mpirun=WIDE),
    "frequent_overhead": Benchmark("overhead", "--sizes 128..8k --budget-ms 300", "--sizes 8k --budget-ms 100", on=("soft",),
                                   variants=FREQUENT, mpirun=WIDE),
    "frequent_reuse": Benchmark("reuse", "--buffers 100", "--buffers 12 --sizes 1k,8k", on=("soft",), variants=FREQUENT, mpirun=WIDE),
    "large_collectives": Benchmark("collectives", "--only allreduce,bcast,shift --sizes 64k,256k,1m --budget-ms 200",
                                   "--only allreduce,bcast,shift --sizes 64k,1m --budget-ms 80", on=("vader",), any_ranks=True,
                                   variants=("ob1", "speculative", "ucx")),
    "frequent_collectives": Benchmark("collectives", "--only bcast,scatter --sizes 128..8k --budget-ms 150",
                                      "--only bcast,scatter --sizes 8k --budget-ms 50", on=("soft",), variants=FREQUENT, ranks=4, mpirun=WIDE),
    "ring_memory": Benchmark("memory", on=("soft",), variants=("ring",), ranks=20),
    "ring_costs": Benchmark("ring-calibrate", "--fabric soft --csv", "--fabric soft --csv --quick", on=("soft",), variants=("tool",)),
})
QUICK = ["halo", "pingpong", "message_rate", "overlap", "soft_overlap", "ring_latency", "ring_rate", "ring_overhead", "frequent_latency",
         "frequent_overhead", "ring_memory", "ring_costs"]


def is_tool(benchmark):
    """An installed program and not one of this folder: it runs as it is, without mpirun."""
    return benchmark.variants == ("tool",)


def preloads_thread(arguments):
    return "libprogressthread" in arguments


def names_on(transport, names):
    return [name for name in names if transport in BENCHMARKS[name].on]

# What the tables and plots show, with the title of the axis; everything else goes to the CSV only.
METRICS = {"half_round_trip", "bandwidth", "rate", "overlap", "time", "iteration", "latency", "per_message", "rtr_usage",
           "extra_bytes", "seconds", "rtr_unused", "overhead", "computation", "waitall", "share", "mean", "memory", "rings", "poll", "cost", "uses",
           "fairness", "passed_on"}
# What explains those: in the tables too, but not in plots and brief tables.
DETAILS = {"transfer", "exposed", "processor"}
WITH_X = {"progress": "{:.4g} us", "exchange": "comm/comp {:g}", "matching": "{:g} messages", "several": "{:g} messages", "threads": "{:g} threads", "crossing": "skew {:g} us", "ring_costs": "{:g} peers"}
# These have results under the name of the catalogue, not that of their program, because several use the same program.
NAMED = {name for name in BENCHMARKS if name.startswith(("soft_", "ring_", "frequent_", "rma_"))}
