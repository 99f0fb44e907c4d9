"""Message rates over the null wire, one core: what `rates` prints, by build and call."""
import os
import statistics
import subprocess

REPETITIONS = 31


def measure(program, env):
    """{call: [(nanoseconds and ticks for a message, ticks for a cycle)]}"""
    cpu = min(os.sched_getaffinity(0))
    done = subprocess.run([str(program), str(REPETITIONS)], capture_output=True, text=True, check=True, timeout=300,
                          env={**env, "WEFT_WIRE": "null"}, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    found = {}
    for line in done.stdout.splitlines():
        name, *numbers = line.split("\t")
        found.setdefault(name, []).append(tuple(map(float, numbers)))
    return found


def rows(build, found):
    """[build, call, M/s, its quartiles, cycles for a message]: medians."""
    for name, each in found.items():
        rates = sorted(1e3 / ns for ns, _, _ in each)
        cycles = statistics.median(ticks / clock for _, ticks, clock in each)
        yield [build, name, f"{statistics.median(rates):.1f}", f"{rates[len(rates) // 4]:.1f} to {rates[3 * len(rates) // 4]:.1f}", f"{cycles:.1f}"]
