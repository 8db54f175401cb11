"""What there is to measure: variants of Open MPI, transports, benchmarks with their arguments."""
from dataclasses import dataclass

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
