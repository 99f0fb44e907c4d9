"""`weft bench threads`: message rate, rate of puts, latency and startup of 1 to 16 threads that talk at once, on every
library; tables, a result file, pictures.

Modes, as in the literature on virtual communication interfaces: `everywhere`, single-threaded processes that do the same work;
`serial`, all threads on one communicator; `parallel`, a communicator for each pair; `share N`, one for N threads; `busy N`,
parallel, and receiving threads compute N us before each window, or between looks into MPI where they are targets of puts. Puts
go by windows as messages go by communicators: one for each pair, or one that threads share. A mode with `+lanes` gives
communicators and windows hints and every library the settings that it is best at; the others leave all as it comes.
"""
import itertools
import pathlib
import sys

from . import libraries, machine, results
from .session import Session, by_bench
from .text import Progress, median, number, spread, table

MODES = ("everywhere", "serial", "serial+lanes", "parallel", "parallel+lanes")
TESTS = {"rate": "thread-rate", "put": "thread-put", "latency": "thread-latency", "startup": "startup"}
RECORDS = {"rate": ("rate of all 8 B", "slowest by mean 8 B"), "put": ("rate of all 8 B", "slowest by mean 8 B"),
           "latency": ("mean latency 8 B", "slowest by mean 8 B"),
           "startup": ("init 0 B", "finalize 0 B")}
UNITS = {"rate": "M/s", "put": "M/s", "latency": "us", "startup": "ms"}


def best_settings(threads):
    """Variables for channels of a thread's own: MPICH's number of virtual communication interfaces, Intel MPI's thread-split
    model; Open MPI and UCX have none that a program's hints would reach."""
    return {"weft": {}, "mpich": {"MPIR_CVAR_CH4_NUM_VCIS": str(threads)},
            "impi": {"I_MPI_THREAD_SPLIT": "1", "I_MPI_THREAD_RUNTIME": "generic", "I_MPI_THREAD_MAX": str(threads)},
            "openmpi": {}, "openmpi-ucx": {}}


def shown_settings(name, threads):
    return " ".join(f"{k}={v}" for k, v in best_settings(threads)[name].items())


def job(mode, threads):
    """Ranks and arguments of two processes of so many threads, or of as many processes."""
    name, lanes, _ = mode.partition("+lanes")
    kind, _, amount = name.partition(" ")
    if kind == "everywhere":
        return 2 * threads, ["--threads", 1, "--level", "single"]
    args = ["--threads", threads, "--share", {"serial": threads, "share": amount}.get(kind, 1)]
    return 2, args + (["--busy", amount] if kind == "busy" and amount != "0" else []) + (["--hints"] if lanes else [])


def known(mode):
    kind, _, amount = mode.partition("+lanes")[0].partition(" ")
    return mode in MODES or kind in ("share", "busy") and amount.isdigit()


def launch(prefix, test, mode, threads, cpus=None, only=None, reps=3, window_ms=200):
    """The measurement; its samples' names begin with key(). `only` names libraries; all otherwise."""
    ranks, args = job(mode, threads)
    settings = best_settings(threads) if "+lanes" in mode else {name: {} for name in best_settings(threads)} if only else None
    if only:
        settings = {name: settings[name] for name in only}
    return by_bench(key(prefix, test, mode, threads), ranks,
                    [TESTS[test], *args, "-r", reps, "-t", window_ms, "-w", window_ms / 4], cpus=cpus, settings=settings,
                    timeout_s=120)


def key(prefix, test, mode, threads):
    return f"{prefix} {test} {mode} {threads}"


def print_table(session, test, modes, threads):
    names = [lib.name for lib in session.found]
    for record in RECORDS[test]:
        rows = []
        for mode, n in itertools.product(modes, threads):
            by_name = session.samples.get(f"{key('threads', test, mode, n)} {record}", {})
            rows.append([mode, n, *(f"{number(median(by_name[m].values()))} ({spread(by_name[m].values())})"
                                    if m in by_name else "-" for m in names)])
        print(f"\n{test}: {record}" + ("" if "by mean" in record else f" ({UNITS[test]})"))
        print(table(["mode", "threads", *(session.labels[n] for n in names)], rows))


def collected(session, tests, modes, threads):
    """{measure: {mode: {threads: {library: [values]}}}}, of each test's first record."""
    return {test: {mode: {n: {name: list(by_rep.values()) for name, by_rep in
                              session.samples.get(f"{key('threads', test, mode, n)} {RECORDS[test][0]}", {}).items()}
                          for n in threads} for mode in modes} for test in tests}


def run(root, only, tests, modes, threads, reps, out, pictures, window_ms=200):
    """Returns the exit status."""
    found = libraries.compared(root, only)
    strange = [mode for mode in modes if not known(mode)] + [test for test in tests if test not in TESTS]
    if strange:
        print(f"weft bench: no mode or test: {', '.join(strange)}", file=sys.stderr)
        return 1
    about = machine.describe()
    caption = f"{machine.caption(about)}; median (range) of n = {reps} launches; two processes, 8 B, windows of 64"
    print(caption)
    for library in found if any("+lanes" in mode for mode in modes) else ():
        print(f"+lanes, {library.label}: {shown_settings(library.name, max(threads)) or 'no settings'}, hints")
    session = Session(found, libraries.program_dir(pathlib.Path(root).resolve()), reps)
    plan = [launch("threads", test, mode, n, window_ms=window_ms) for test in tests for mode in modes for n in threads]
    session.progress = Progress(reps * len(plan))
    for rep, measurement in itertools.product(range(reps), plan):
        measurement.run(session, rep)
        session.progress.step()
    session.progress.clear()
    for test in tests:
        print_table(session, test, modes, threads)
    results.write(session, about, caption, "threads",
                  {"units": UNITS, "data": collected(session, tests, modes, threads)}, out, pictures)
    return results.status(session)
