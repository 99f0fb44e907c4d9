"""`weft bench bars`: every bar the project sets itself, measured with default settings and interleaved repetitions.

How launches are paired is in session.py, how a bar is judged in rows.py. All values are printed, then the table. A missed
bar is a result, not an error: the exit status tells only whether it could be measured.
"""
import json
import pathlib
import subprocess
import sys

from . import coll, libraries, machine, part_bars, sweep, threads
from .rows import Row, against_best, against_key, against_number, amount, mean_of
from .session import Session, alternating, by_bench, comparator, comparators, ours, startup
from .text import Progress, median, number, size_name, spread, table

LARGE = (4 << 10, 4 << 20)
MEAN_FROM = 64 << 10
COLL_RANKS = (2, 8, 16, 32)
COLL_HOGS = {"allreduce 8 B": ("allreduce", 8), "bcast 64 KiB": ("bcast", 64 << 10)}
GIVEN = (8, 4 << 10, 64 << 10, 1 << 20)
LEVELS = [(level, [test, "-m", "8:8", "-r", 3, "--level", level])
          for test in ("latency", "rate") for level in ("single", "multiple")]
SMALL = (8, 32 << 10)
SMALL_RANKS = (2, 8, 32)
RMA_SMALL = [size_name(n) for n in sweep.doubling(16, 32 << 10)]
BUSY_RANKS = (2, 8)
BUSY = (("pingpong", 8, "us"), ("flood", 8, "ms"), ("allreduce", 8, "us"), ("halo", 65536, "us"),
        ("sendrecv", 65536, "us"))
BUSY_NAMES = {"pingpong": "8 B ping-pong", "flood": "flood of 10^5", "allreduce": "allreduce 8 B",
              "halo": "halo 64 KiB, nonblocking", "sendrecv": "halo 64 KiB, Sendrecv"}


HEAP_FROM = 16 << 10
HEAP_TESTS = (("latency", "us", 16 << 20), ("bandwidth", "GB/s", 4 << 20))   # 64 buffers of 4 MiB are in flight in a window
HEAP_USES = (("rewritten", []), ("reused", ["--no-rewrite"]))
HMPI_SIZES = (4 << 10, 64 << 10, 4 << 20)


def by_size(s, test, unit, lower_is_better):
    """A row for every size and one for the geometric mean from 64 KiB on; and the rows of that mean."""
    rows, large = [], []
    for size in sweep.doubling(*LARGE):
        row = against_best(s, f"{test} {size_name(size)}", f"large {test} {test} {size_name(size)}", unit,
                           lower_is_better, 0.9, False)
        rows.append(row)
        if size >= MEAN_FROM:
            large.append(row)
    return rows + [mean_of(f"{test} from 64 KiB, geometric mean", large, 1.3)], large


def core_rows(s):
    against_raw = s.samples.get("limits mpi / two lines", {}).get("weft", {})
    rows = [Row("8 B latency against two raw lines", amount(s.middle("limits mpi"), "ns"),
                amount(s.middle("limits two lines"), "ns"), against_raw, 1.25)]
    rows.append(against_best(s, "8 B latency against the best peer", "latency 8 B", "us", True, 1.0, True))
    rows.append(against_key(s, "8 B latency after collectives against before", "collectives after", "collectives before",
                            "us", 1.03))
    rows.append(against_best(s, "8 B message rate, window 64", "rate 8 B", "M/s", False, 2.0, False))
    latency, large_latency = by_size(s, "latency", "us", True)
    bandwidth, large_bandwidth = by_size(s, "bandwidth", "GB/s", False)
    rows += latency + bandwidth + [mean_of("both from 64 KiB, geometric mean", large_latency + large_bandwidth, 1.3)]
    rows.append(against_key(s, "ring of 8 ranks against sched_yield", "ring", "ring plain", "us/hop", 1.3,
                            other_name="plain", text="(plain C)"))
    return rows


def launcher_rows(s):
    key = "mpiexec -n 2 hello"
    rows = [against_key(s, key + " against MPICH", key, key, "ms", 0.25, other_name="mpich")]
    key = "mpiexec -n 64 hello"
    rows.append(against_best(s, key + " against the best peer", key, "ms", True, 0.25, True))
    for ranks in (2, 8):
        key = f"PSS per rank, {ranks} ranks"
        peer = s.best_peer(key, min)
        rows.append(against_number(s, key + ", of 3 MB", key, "MB", 3, 1,
                                   amount(s.middle(key, peer), f"MB ({s.labels.get(peer)})")))
    for kind, limit in (("persistent", 1.05), ("mprobe", None)):
        rows.append(against_key(s, f"8 B latency, {kind} against plain", f"variants {kind} 8 B", "variants plain 8 B",
                                "us", limit))
    rows.append(against_key(s, "2 ranks on one CPU against sched_yield", "one CPU 8 B", "one CPU plain", "us", 1.5,
                            other_name="plain", text="(plain C)"))
    return rows


def wires_rows(s):
    return [against_key(s, "8 B latency by sockets against bare sockets", "sockets latency", "sockets plain", "us", 1.3,
                        other_name="plain", text="(plain C)")]


def memory_rows(s):
    """By the program's own records: /proc's PSS and VmPTE. MiB of the bars in MB."""
    return [against_number(s, "64 ranks, 32 x 16 KiB to each: shared memory and page tables per rank, of 6 MiB",
                           "memory windows shared and page tables per rank", "MB", 6 * 1.048576, 1, "6.29 MB"),
            against_number(s, "256 ranks, alltoall 8 B: memory and page tables of all, of 1 GiB",
                           "memory alltoall all memory after alltoall", "MB", 1024 * 1.048576, 1, "1074 MB"),
            against_number(s, "256 ranks, 8 B from each to each by messages, of 1 GiB",
                           "memory alltoall all memory after each to each", "MB", 1024 * 1.048576, None, "1074 MB")]


def malloc_rows(s):
    """Against libc's in the same repetition; both by Weft's own launches, as `malloc` is not MPI's."""
    return [against_key(s, f"malloc and free {how}: in the shared heap against libc", f"malloc shared {how}", f"malloc libc {how}", "ns",
                        1.0, text="(libc)")
            for how in ("by one thread", "by two threads", "freed by another thread")]


def busy_rows(s):
    """At two ranks every row has a bar and the mean one; at more the mean alone."""
    rows = []
    for ranks in BUSY_RANKS:
        limit = 0.5 if ranks == 2 else None
        each = [against_best(s, f"{ranks} ranks beside hogs: {BUSY_NAMES[test]}",
                             f"busy {ranks} {test} {size_name(size)}", unit, True, limit, False)
                for test, size, unit in BUSY]
        rows += each + [mean_of(f"{ranks} ranks beside hogs: geometric mean", each, 1.0)]
    return rows


def small_rows(s):
    return [against_best(s, f"{test} {size_name(size)}, {ranks} ranks", sweep.key("small", test, ranks, size),
                         sweep.UNITS[test], test == "latency", None, False)
            for ranks in SMALL_RANKS for test in sweep.TESTS for size in sweep.doubling(*SMALL)]


def matching_rows(s):
    return [against_key(s, f"8 B latency behind {depth} {kind} against 1", f"depth {depth} {kind} 8 B", f"depth 1 {kind} 8 B",
                        "us", 3) for kind in ("posted", "unexpected") for depth in (100, 10000, 100000)]


def handed_over(form, size):
    """One-way time between two ranks of a buffer that is not read: given and taken (opi), or sent and received (mpi)."""
    return ours(f"ownership {form} {size_name(size)}", 2, ["-m", f"{size}:{size}", "--form", form, "--unread"], program="weft-pipe")


def ownership_rows(s):
    message = "ownership mpi 8 B mpi"
    each = [against_key(s, f"hand-over of {size_name(size)} against an 8 B message", f"ownership opi {size_name(size)} opi", message, "us", 1.1)
            for size in GIVEN]
    large = size_name(GIVEN[-1])
    return [*each,
            against_key(s, f"{large} sent against handed over", f"ownership mpi {large} mpi", f"ownership opi {large} opi", "us", 20,
                        at_most=False),
            against_number(s, "OPI_Free + OPI_Alloc, of 25 ns", "ownership pool opi", "ns", 25, 1, "25 ns")]


def coll_rows(s):
    rows = []
    for ranks in COLL_RANKS:
        limit = 0.9 if ranks == 2 else 0.85
        for op in coll.SIX:
            each = [against_best(s, f"{ranks} ranks: {op} {size_name(size) if size else ''}".strip(),
                                 coll.key("coll", ranks, "blocking", op, size), "us", True, limit, False)
                    for size in coll.sizes_of(op)]
            rows += each + [mean_of(f"{ranks} ranks: {op}, geometric mean", each, 1.25)]
    for op in ("allreduce", "barrier"):
        rows.append(against_key(s, f"2 ranks: {op + ' 8 B' if op != 'barrier' else op} against one-way latency",
                                f"coll free {op}", "coll latency latency", "us", 2))
    rows.append(against_key(s, "8 ranks: barrier against sched_yield", "coll in turns", "coll in turns plain", "us", 1.6,
                            other_name="plain", text="(plain C)"))
    for what in COLL_HOGS:
        rows.append(against_best(s, f"8 ranks beside hogs: {what}", f"coll hogs {what}", "us", True, 1.0, False))
    rows.append(against_number(s, "10^4 communicators with an allreduce each: memory that stays, of 1 MB",
                               "coll many memory that stays", "MB", 1, 1, "1 MB"))
    rows.append(against_key(s, "10^4 communicators: dup, allreduce, free against dup, free",
                            "coll many dup, allreduce and free", "coll many dup and free", "us", 1.5))
    return rows


def best_of_peers(s, what, key, keys, unit, limit, threads_each):
    """Against the peer and the settings that do best, which the row names."""
    peers = {(name, k): s.middle(k, name) for k in keys for name in s.labels if name != "weft"}
    measured = {at: value for at, value in peers.items() if value is not None}
    if not measured:
        return Row(what, amount(s.middle(key), unit), "-", {}, limit, False, "no peer measured")
    name, best = max(measured, key=measured.get)
    how = threads.shown_settings(name, threads_each) or "no settings"
    text = f"{unit} ({s.labels[name]}, {how + ', hints' if 'lanes' in best.removeprefix('lanes') else 'as it comes'})"
    return Row(what, amount(s.middle(key), unit), amount(measured[name, best], text), s.ratios(key, name, best), limit, False)


def lanes_rows(s):
    def rate(mode, n):
        return threads.key("lanes", "rate", mode, n) + " rate of all 8 B"

    def slowest(mode, n):
        return threads.key("lanes", "rate", mode, n) + " slowest by mean 8 B"
    least = {"at_most": False}
    return [
        against_key(s, "2 x 2 threads, a communicator each, against 4 processes", rate("parallel", 2), rate("everywhere", 2),
                    "M/s", 0.95, **least),
        best_of_peers(s, "2 x 2 threads, a communicator each, against the best peer", rate("parallel", 2),
                      [rate("parallel", 2), rate("parallel+lanes", 2)], "M/s", 4, 2),
        against_key(s, "the same, with hints against without", rate("parallel+lanes", 2), rate("parallel", 2), "M/s", None,
                    **least),
        Row("one process, 2 threads, null wire", "-", "-", {}, 1.9, False, "not measured: no program can choose that wire"),
        against_key(s, "8 B latency, SINGLE against MULTIPLE", "lanes levels single latency", "lanes levels multiple latency",
                    "us", 0.97, **least),
        against_key(s, "8 B rate, MULTIPLE against SINGLE", "lanes levels multiple rate", "lanes levels single rate", "M/s",
                    0.97, **least),
        against_key(s, "2 x 2 threads, one communicator, against 2 x 1", rate("serial", 2), rate("parallel", 1), "M/s", 0.8,
                    **least),
        against_number(s, "2 x 2 threads, one communicator: slowest by mean", slowest("serial", 2), "", 1, 0.5, "the mean",
                       **least),
        against_key(s, "2 x 16 threads, a communicator each, against 2 x 2", rate("parallel", 16), rate("parallel", 2), "M/s",
                    0.8, **least),
        against_number(s, "2 x 16 threads: slowest by mean", slowest("parallel", 16), "", 1, 0.5, "the mean", **least)]


def heap_rows(s):
    """Buffers from MPI_Alloc_mem on every library; rewritten before each send, or the same again and again."""
    rows, every = [], []
    for test, unit, most in HEAP_TESTS:
        for use, _ in HEAP_USES:
            each = [against_best(s, f"{test}, {use}, {size_name(size)}", f"heap {test} {use} {test} {size_name(size)}", unit,
                                 test == "latency", 1.0, False) for size in sweep.doubling(HEAP_FROM, most)]
            rows += each
            every += each
    return rows + [mean_of("buffers in the shared heap, geometric mean", every, 1.5)]


def rma_rows(s):
    """Of an allocated window. "Bare" is the same by loads, stores and locked instructions in the same process and turn."""
    put = "rma put and flush"
    rows = [against_best(s, "8 B put and flush against the best peer", f"{put} 8 B", "ns", True, 1.0, True),
            against_number(s, "8 B put and flush over a store and a locked instruction, of 20 ns", f"{put} over bare 8 B", "ns", 20, 1, "20 ns")]
    rows += [against_key(s, f"8 B {name} against the bare instruction", f"rma {name} 8 B", f"rma bare {one} 8 B", "ns", 3)
             for name, one in (("fetch and op", "fetch"), ("compare and swap", "swap"))]
    rows.append(against_key(s, "8 B fetch and op by two ranks against bare", "rma fetch and op by both 8 B", "rma bare fetch by both 8 B",
                            "M/s", 0.8, at_most=False))
    for name, bare in (("put and flush", "rma bare copy"), ("get and flush", "rma bare load")):
        for size in (size_name(n) for n in sweep.doubling(16, 1 << 20)):
            if size in RMA_SMALL:
                rows.append(against_number(s, f"{name} of {size} over memcpy, of 10 ns", f"rma {name} over bare {size}", "ns", 10, 1, "10 ns"))
            else:
                rows.append(against_key(s, f"memcpy of {size} against {name}", f"{bare} {size}", f"rma {name} {size}", "ns", 0.95,
                                        at_most=False))
    rows.append(against_best(s, "accumulate of 64 KiB doubles against the best peer", "rma accumulate and flush 64 KiB", "ns", True, 1.0, True))
    rows.append(against_key(s, "lock, put, unlock: target computing against target in MPI", "rma lock, put, unlock beside computing 8 B",
                            "rma lock, put, unlock 8 B", "ns", 1.1))

    def puts(mode):
        return threads.key("rma", "put", mode, 2) + " rate of all 8 B"
    rows.append(against_key(s, "8 B puts of 2 x 2 threads, a window each, against 4 processes", puts("parallel"), puts("everywhere"), "M/s", 0.95,
                            at_most=False))
    rows.append(best_of_peers(s, "8 B puts of 2 x 2 threads, a window each, against the best peer", puts("parallel"),
                              [puts("parallel"), puts("parallel+lanes")], "M/s", 4, 2))
    rows.append(against_key(s, "the same, with hints against without", puts("parallel+lanes"), puts("parallel"), "M/s", None, at_most=False))
    return rows


def hmpi_launches():
    """Weft and Hybrid MPI's design (plain/hmpi.c), each size and use in a launch of its own, next to each other."""
    for use, flags in HEAP_USES:
        for size in HMPI_SIZES:
            args = ["latency", "-m", f"{size}:{size}", "-r", 5]
            yield ours(f"hmpi {use} {size_name(size)}", 2, [*args, "--alloc-mem", *flags])
            yield comparators(f"hmpi {use}", args + ([] if flags else ["--rewrite"]), "weft-bench-hmpi")


def hmpi_rows(s):
    return [against_key(s, f"one way, {use}, {size_name(size)}: against {text}", f"hmpi {use} {size_name(size)} latency",
                        f"hmpi {use} {way} {size_name(size)}", "us", 1.0, other_name="plain", text="(plain C)")
            for use, _ in HEAP_USES for size in HMPI_SIZES
            for way, text in (("hmpi", "HMPI's design"), ("single", "HMPI's single copy"))]


def path_rows(s):
    """Beside the counts of instructions; cycles into the null wire: `weft count --rates`."""
    return [against_best(s, "8 B message rate by shared memory, one pair, window 64", "path rate 8 B", "M/s", False, 3.0, False)]


GROUPS = {
    "core": ([ours("limits", 2, ["limits", "--pairs", 30]),
              by_bench("latency 8 B", 2, ["latency", "-m", "8:8"]),
              ours("collectives", 2, ["after", "-r", 15]),
              by_bench("rate 8 B", 2, ["rate"]),
              by_bench("large latency", 2, ["latency", "-m", f"{LARGE[0]}:{LARGE[1]}", "-r", 3]),
              by_bench("large bandwidth", 2, ["bandwidth", "-m", f"{LARGE[0]}:{LARGE[1]}", "-r", 3]),
              by_bench("ring", 8, ["ring", "--hops", 10000, "-r", 3]),
              comparator("ring plain", ["ring", "-n", 8, "--hops", 10000, "-r", 3])], core_rows),
    "launcher": ([startup(2), startup(64),
                  by_bench("PSS per rank, 2 ranks", 2, ["footprint"]),
                  by_bench("PSS per rank, 8 ranks", 8, ["footprint"]),
                  by_bench("variants", 2, ["variants", "-m", "8:8"]),
                  by_bench("one CPU 8 B", 2, ["latency", "-m", "8:8", "-r", 3, "-w", 2], cpus=1),
                  comparator("one CPU plain", ["pingpong", "--hops", 10000, "-r", 3], cpus=1)], launcher_rows),
    "wires": ([ours("sockets", 2, ["latency", "-m", "8:8"], {"WEFT_WIRE": "sock"}),
               comparator("sockets plain", ["socket", "--hops", 10000, "-r", 3])], wires_rows),
    "busy": ([by_bench(f"busy {ranks}", ranks, ["busy", "-r", 1], cpus=2, hogs=1) for ranks in BUSY_RANKS], busy_rows),
    "memory": ([ours("memory windows", 64, ["windows"], timeout_s=300), ours("memory alltoall", 256, ["alltoall"], timeout_s=300)], memory_rows),
    "malloc": ([ours("malloc libc", 1, ["allocate", "-r", 3]),
                ours("malloc shared", 1, ["allocate", "-r", 3], {"MPIEXEC_SHARED_HEAP": "1"})], malloc_rows),
    "matching": ([by_bench("depth", 2, ["depth"])], matching_rows),
    "ownership": ([*(handed_over("opi", size) for size in GIVEN), *(handed_over("mpi", size) for size in (GIVEN[0], GIVEN[-1])),
                   ours("ownership pool", 2, ["--scheme", "opi"], program="weft-pool")], ownership_rows),
    "coll": ([*(coll.launch("coll", ranks, coll.SIX, cpus=2) for ranks in COLL_RANKS),
              ours("coll free", 2, ["coll", "--ops", "barrier,allreduce", "-m", "8:8", "--starts", "free"]),
              ours("coll latency", 2, ["latency", "-m", "8:8"]),
              by_bench("coll in turns", 8, ["coll", "--ops", "barrier", "--starts", "free", "-t", 50], cpus=2),
              comparator("coll in turns plain", ["barrier", "-n", 8, "--hops", 80000, "-r", 3], cpus=2),
              *(by_bench(f"coll hogs {what}", 8, ["coll", "--ops", op, "-m", f"{size}:{size}", "--starts", "free", "-r", 1,
                                                  "-t", 300, "-w", 50], cpus=2, hogs=1)
                for what, (op, size) in COLL_HOGS.items()),
              ours("coll many", 2, ["communicators"])], coll_rows),
    "lanes": ([*(threads.launch("lanes", "rate", mode, n, 2, only)
                 for mode, n, only in (("everywhere", 2, ["weft"]), ("parallel", 2, None), ("parallel+lanes", 2, None),
                                       ("serial", 2, ["weft"]), ("parallel", 1, ["weft"]))),
               threads.launch("lanes", "rate", "parallel", 16, 2, ["weft"], reps=1, window_ms=1000),  # slices for all
               alternating("lanes levels", 2, LEVELS, 3)], lanes_rows),
    "heap": ([by_bench(f"heap {test} {use}", 2, [test, "-m", f"{HEAP_FROM}:{most}", "-r", 3, "--alloc-mem", *flags], timeout_s=120)
              for test, _, most in HEAP_TESTS for use, flags in HEAP_USES], heap_rows),
    "hmpi": (list(hmpi_launches()), hmpi_rows),
    "part": (part_bars.MEASUREMENTS, part_bars.rows),
    "path": ([by_bench("path rate 8 B", 2, ["rate"])], path_rows),
    "rma": ([by_bench("rma", 2, ["rma", "-m", "8:1048576", "-r", 3]),
             *(threads.launch("rma", "put", mode, 2, 2, only)
               for mode, only in (("everywhere", ["weft"]), ("parallel", None), ("parallel+lanes", None)))], rma_rows),
    "small": ([sweep.launch("small", test, ranks, SMALL) for ranks in SMALL_RANKS for test in sweep.TESTS], small_rows),
}
DEFAULT_GROUPS = ["core", "launcher", "wires", "memory", "busy", "matching"]  # those with bars that Weft is to meet today


def every_repetition(session):
    print("\nEvery repetition (one launch each, @ what a bare line took, ns)")
    rows = []
    for key, by_name in session.samples.items():
        for name, by_rep in by_name.items():
            values = list(by_rep.values())
            paces = [session.lines.get((key, name, rep)) for rep in by_rep]
            each = [number(v) + ("" if p is None else f"@{p:.0f}") for v, p in zip(values, paces)]
            shown = " ".join(each) if len(values) <= 16 else f"n = {len(values)}"
            rows.append([key, session.labels.get(name, "plain C"), number(median(values)), spread(values), shown])
    print(table(["measurement", "library", "median", "range", "values"], rows, left=2))


def instruction_rows(root):
    """One row for each instruction budget, as `weft count` measures it."""
    script = libraries.SOURCES / "count" / "weft_count.py"
    if not script.exists():
        return [Row("instructions", "-", "-", {}, 1, note="weft count is not installed")]
    try:
        done = subprocess.run([sys.executable, str(script), "--root", str(root), "--json"], capture_output=True,
                              text=True, timeout=600)
        counted = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return [Row("instructions", "-", "-", {}, 1, note="weft count failed: run it for the reason")]
    return [Row(f"instructions: {c['what']}, {c['build']}", f"{c['count']:g}", f"budget {c['budget']:g}",
                {0: c["count"] / c["budget"]}, 1, exact=True) for c in counted["rows"] if c.get("budget")]


def chosen(groups, part):
    """(group, its measurements, its rows) of these groups; with `part`, only measurements whose name contains one of its
    alternatives, which commas separate."""
    for group in groups:
        measurements, make_rows = GROUPS[group]
        kept = [m for m in measurements if not part or any(p in m.key for p in part.split(","))]
        if kept:
            yield group, kept, make_rows


def measure(session, plan):
    session.progress = Progress(session.reps * sum(len(measurements) for _, measurements, _ in plan))
    for group, measurements, _ in plan:
        session.progress.say(f"\n{group}: {session.reps} repetitions, interleaved")
        for rep in range(session.reps):
            for measurement in measurements:
                measurement.run(session, rep)
                session.progress.step()
    session.progress.clear()


def print_verdicts(rows):
    print("\nBars (met or missed: the whole 95 % interval of the median ratio lies on that side of the limit)")
    print(table(Row.HEAD, [row.cells() for row in rows]))
    verdicts = [row.verdict() for row in rows if row.limit is not None and row.ratio is not None]
    undecided = sum(v.startswith("not decided") for v in verdicts)
    unmeasured = sum(row.ratio is None for row in rows)
    print(f"\n{verdicts.count('met')} met, {verdicts.count('MISSED')} missed, {undecided} not decided, "
          f"{unmeasured} not measured")


def run(root, groups, reps, only, out, part=None):
    """Returns the exit status."""
    found = libraries.compared(root, only)
    plan = list(chosen(groups, part))
    if not plan:
        print(f"weft bench: nothing to measure is named {part}", file=sys.stderr)
        return 1
    about = machine.describe()
    print(machine.caption(about))
    for warning in machine.warnings(about):
        print("note: " + warning)
    session = Session(found, libraries.program_dir(pathlib.Path(root).resolve()), reps)
    measure(session, plan)
    rows = [row for _, _, make_rows in plan for row in make_rows(session)]
    if part:  # what was not asked for is not missing
        rows = [row for row in rows if row.ratio is not None]
    elif {"core", "path"} & set(groups):
        rows += instruction_rows(root)
    every_repetition(session)
    print_verdicts(rows)
    for what, why in session.broken.items():
        print(f"broken: {what}: {why}")
    if out:
        pathlib.Path(out).write_text(json.dumps({
            "machine": about, "versions": {lib.name: lib.version for lib in session.found}, "samples": {k: {n: list(v.values()) for n, v in by_name.items()}
                                          for k, by_name in session.samples.items()}, "broken": session.broken,
            "bars": [row.record() for row in rows]}, indent=1), encoding="utf-8")
    measured = any(library.name == "weft" for library in found)
    return 1 if not measured or any(name.startswith("weft:") for name in session.broken) else 0
