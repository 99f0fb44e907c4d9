"""Message rates of one core: what `rates` prints, by build and call."""
import os
import statistics
import subprocess

REPETITIONS = 31
LINK_GAPS_NS = (10, 50)   # of the simulated links: one takes more messages than MPI_Isend makes, one fewer
WAYS = {
    "null": ("into the null wire from one core", [[]]),
    "link": ("from one core into links that take a message every %d and %d ns" % LINK_GAPS_NS, [[str(gap)] for gap in LINK_GAPS_NS]),
    "shm": ("by shared memory, from one rank to another that has posted its receives, each window answered", [["paired"]]),
}


def measure(program, env, way, launch):
    """[(what, {call: [(nanoseconds and ticks for a message, ticks for a cycle)]})], by the arguments of the way."""
    results = []
    for options in WAYS[way][1]:
        command = [str(program), str(REPETITIONS), *options]
        if way == "shm":
            done = subprocess.run([*launch, "-n", "2", *command], capture_output=True, text=True, check=True, timeout=300, env=env)
        else:
            cpu = min(os.sched_getaffinity(0))
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env={**env, "WEFT_WIRE": "null"},
                                  preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        found = {}
        for line in done.stdout.splitlines():
            name, *numbers = line.split("\t")
            found.setdefault(name, []).append(tuple(map(float, numbers)))
        results.append((f"{options[0]} ns" if way == "link" else "", found))
    return results


def rows(build, gap, found):
    """[build, gap, call, M/s, its quartiles, cycles for a message]: medians."""
    for name, each in found.items():
        rates = sorted(1e3 / ns for ns, _, _ in each)
        cycles = statistics.median(ticks / clock for _, ticks, clock in each)
        yield [build, gap, name, f"{statistics.median(rates):.1f}", f"{rates[len(rates) // 4]:.1f} to {rates[3 * len(rates) // 4]:.1f}", f"{cycles:.1f}"]
