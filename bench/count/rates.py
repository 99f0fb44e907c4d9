"""Message rates over the null wire, one core: what `rates` prints, by build and call."""
import os
import pathlib
import statistics
import subprocess

REPETITIONS = 31


def ticks_per_second():
    """Of the processor's time stamp counter, as the kernel measures it; from the model's name where it does not say."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("cpu MHz"):
            return float(line.split(":")[1]) * 1e6
    return 0.0


def measure(program, env):
    """{call: [(ticks for a message, ticks for a cycle)]}"""
    cpu = min(os.sched_getaffinity(0))
    done = subprocess.run([str(program), str(REPETITIONS)], capture_output=True, text=True, check=True, timeout=300,
                          env={**env, "WEFT_WIRE": "null"}, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    found = {}
    for line in done.stdout.splitlines():
        name, ticks, clock = line.split("\t")
        found.setdefault(name, []).append((float(ticks), float(clock)))
    return found


def rows(build, found):
    """[build, call, M/s, its quartiles, cycles for a message]: medians."""
    second = ticks_per_second()
    for name, each in found.items():
        rates = sorted(second / ticks / 1e6 for ticks, _ in each)
        cycles = statistics.median(ticks / clock for ticks, clock in each)
        yield [build, name, f"{statistics.median(rates):.1f}", f"{rates[len(rates) // 4]:.1f} to {rates[3 * len(rates) // 4]:.1f}", f"{cycles:.1f}"]
