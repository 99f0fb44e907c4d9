"""Latency, bandwidth and message rate by size: `weft bench sweep` for any number of ranks, measure() for the demo's two."""
import pathlib
import sys

from . import libraries as known
from . import machine, runner
from .rows import against_best
from .session import Session, by_bench
from .text import Progress, median, number, size_name, spread, table

TESTS = ("latency", "bandwidth")  # the rate of a window is its bandwidth in messages

# Two ranks alone: medians of short windows at one pace of the machine. More of them in pairs at once, and collectives: means of
# windows long enough for ranks that take turns on a CPU.
PROGRAMS = {"latency": ("latency", "pingpong"), "bandwidth": ("bandwidth", "stream"), "allreduce": ("allreduce", "allreduce")}
UNITS = {"latency": "us", "bandwidth": "GB/s", "allreduce": "us"}
SHORT, LONG = ["-r", 3], ["-r", 1, "-t", 50, "-w", 10]


def doubling(lo, hi):
    while lo <= hi:
        yield lo
        lo *= 2


def program(test, ranks):
    return PROGRAMS[test][ranks > 2]


def launch(prefix, test, ranks, sizes):
    """The measurement; its samples are named as key() says."""
    name = program(test, ranks)
    window = SHORT if name in TESTS else LONG
    return by_bench(f"{prefix} {ranks} {test}", ranks, [name, "-m", f"{sizes[0]}:{sizes[1]}", *window], timeout_s=300)


def key(prefix, test, ranks, size):
    return f"{prefix} {ranks} {test} {program(test, ranks)} {size_name(size)}"


def print_sizes(session, test, ranks, sizes):
    names, rows = [lib.name for lib in session.found], []
    for size in doubling(*sizes):
        by_name = session.samples.get(key("sweep", test, ranks, size), {})
        cells = [f"{number(median(by_name[n].values()))} ({spread(by_name[n].values())})" if n in by_name else "-"
                 for n in names]
        row = against_best(session, "", key("sweep", test, ranks, size), "", test != "bandwidth", None, False)
        rows.append([size_name(size), *cells, "-" if row.ratio is None else number(row.ratio) + " x"])
    print(f"\n{test}, {ranks} ranks ({UNITS[test]}{'; all pairs at once' if ranks > 2 and test in TESTS else ''})")
    print(table(["size", *(session.labels[n] for n in names), "merit of Weft"], rows))


def run(root, only, ranks, sizes, tests, reps):
    """Every test at every number of ranks; returns the exit status."""
    found = known.compared(root, only)
    if sizes[0] < 8 or set(tests) - set(PROGRAMS):
        print("weft bench: nothing to measure: sizes begin at 8, tests are " + ", ".join(PROGRAMS), file=sys.stderr)
        return 1
    print(f"{machine.caption(machine.describe())}; median (range) of n = {reps} launches")
    session = Session(found, known.program_dir(pathlib.Path(root).resolve()), reps)
    plan = [(test, n, launch("sweep", test, n, sizes)) for n in ranks for test in tests]
    session.progress = Progress(reps * len(plan))
    for test, n, measurement in plan:
        for rep in range(reps):
            measurement.run(session, rep)
            session.progress.step()
        session.progress.clear()
        print_sizes(session, test, n, sizes)
        sys.stdout.flush()
    for what, why in session.broken.items():
        print(f"broken: {what}: {why}")
    return 1 if any(name.startswith("weft:") for name in session.broken) else 0


def measure(libraries, reps, sizes, progress, window_ms=3, samples=2):
    """{library: {test: {bytes: [one value per repetition]}}}; a library that fails is left out, with the reason."""
    data, broken = {}, {}
    working = list(libraries)
    for rep in range(reps):
        for library in working[rep % len(working):] + working[:rep % len(working)]:
            for test in TESTS:
                progress.begin(f"{library.label}: {test}, {rep + 1} of {reps}")
                progress.step()
                if library.name in broken:
                    continue
                try:
                    lines = runner.bench(library, 2, [test, "-m", f"{sizes[0]}:{sizes[1]}", "-r", samples,
                                                      "-t", window_ms, "-w", window_ms])
                except runner.Broken as why:
                    broken[library.name] = str(why)
                    continue
                by_size = data.setdefault(library.name, {}).setdefault(test, {})
                for line in lines:
                    by_size.setdefault(line["bytes"], []).append(median(line["samples"]))
    for name in broken:
        data.pop(name, None)
    for tests in data.values():
        tests["rate"] = {size: [v * 1e3 / size for v in values] for size, values in tests["bandwidth"].items()}
    return data, broken
