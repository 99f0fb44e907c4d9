#!/usr/bin/env python3
"""`weft count`: instructions of the critical paths, counted by callgrind, against their budgets and their baselines.

Two builds are counted. The default one, as a shared library: what runs from the entry of a call to its return, callees
included; once more as `multiple`, by one thread under MPI_THREAD_MULTIPLE. And the optimised one (no checks, one thread,
static, link-time optimisation), where calls dissolve into the program: the slope of a loop with the call minus the slope of
one without. With a peer, the counted rank runs under callgrind and the peer natively.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from weft_bench import libraries, runner  # noqa: E402
from weft_bench.text import table  # noqa: E402
import callgrind  # noqa: E402
import rates  # noqa: E402
import reasons  # noqa: E402

BASELINES = HERE / "baselines.json"
# What each build of the library is configured with. The optimised one is a static archive that programs are linked with by -flto.
OFF = {"no-err": ["-DWEFT_CHECKS=OFF"], "no-err-single": ["-DWEFT_CHECKS=OFF", "-DWEFT_SINGLE=ON"]}
OFF["optimised"] = OFF["no-err-single"]
BUILDS = ("default", "multiple", *OFF)
# Table 1 and the staircase of "Why Is MPI So Slow?": MPI_Isend, MPI_Put.
PAPER_REASONS = {"error check": (74, 72), "thread check": (6, 14), "call": (23, 25), "redundant checks": (59, 62), "mandatory": (59, 44)}
PAPER_STAIRS = {"default": (221, 215), "no-err": (147, 143), "no-err-single": (141, 129), "optimised": (59, 44)}
STAIRS = ("MPI_Isend, null wire", "MPI_Put of 8 B, null wire")
LONG, SHORT = 64, 32          # calls in a phase of `counted`; the slope is taken between the two
COUNTED = ("Send", "Isend", "Recv", "Irecv", "Wait", "Waitall", "Start", "Mprobe", "Mrecv", "Pready", "Parrived", "Put", "Get",
           "Fetch_and_op", "Compare_and_swap", "Allreduce", "Barrier", "Bcast", "Reduce",
           "Gather", "Scatter", "Allgather", "Alltoall", "Reduce_scatter_block", "Scan", "Alltoallv", "Neighbor_alltoall")
COUNTED_OWN = ("OPI_Give", "OPI_Take", "OPI_Alloc", "OPI_Free",
               *(f"{p}MPIX_{name}" for p in ("", "P") for name in ("Isend_global", "Isend_npn", "Isend_noreq", "Isend_nomatch", "Isend_all_opts",
                                                                   "Put_virtual_addr")))
FLAGS = ["-O2", "-std=gnu11", "-march=x86-64-v2", "-D_GNU_SOURCE"]
MORE_FOR_A_LOCK = 6           # instructions by which a call may exceed itself below MPI_THREAD_MULTIPLE, for each lock
PATIENT = 1 << 20             # polls of the peer: in a collective it waits for a rank that is slow, and should not have to be woken
# Against the null wire nothing varies; beside a live peer a poll more or less may fall into a phase.
SLACK = {"null": 0.05, "shm": 3.0}
GREW, BROKEN = 1, 2        # exit statuses


@dataclass(frozen=True)
class Row:
    what: str
    wire: str
    phase: str
    budget: dict
    most: dict = field(default_factory=dict)  # of each kind of instruction that should not be there
    near: str = ""                            # the row that this one may exceed by 5 %
    own: bool = False                         # of calls that no other library has
    locks: int | None = None                  # that one thread takes under MPI_THREAD_MULTIPLE; None: not judged


NOTHING_SLOW = {"atomic": 1, "indirect": 0, "plt": 0}
ROWS = (
    Row("MPI_Isend, null wire", "null", "isend", {"default": 80, "optimised": 20}, locks=1),
    Row("MPI_Isend on a duplicate, null wire", "null", "isend-dup", {"default": 90, "optimised": 30}, locks=1),
    Row("MPI_Isend on MPIX_COMM_1, null wire", "null", "isend-fixed", {}, own=True, locks=1),
    Row("MPIX_Isend_global, null wire", "null", "isend-global", {}, own=True),
    Row("MPIX_Isend_npn, null wire", "null", "isend-npn", {}, own=True),
    Row("MPIX_Isend_noreq, null wire", "null", "isend-noreq", {}, own=True),
    Row("MPIX_Isend_nomatch, null wire", "null", "isend-nomatch", {}, own=True),
    *(Row(f"MPIX_Isend_{name} on MPIX_COMM_1, null wire", "null", f"isend-{name}-fixed", {}, own=True) for name in ("global", "npn", "noreq", "nomatch")),
    Row("MPIX_Isend_all_opts, null wire", "null", "isend-all-opts", {"optimised": 12}, own=True, locks=1),
    Row("MPI_Put of 8 B, null wire", "null", "put", {"default": 60, "optimised": 25}, locks=0),
    Row("MPI_Get of 8 B, null wire", "null", "get", {"default": 60, "optimised": 25}, locks=0),
    Row("MPI_Fetch_and_op of 8 B, null wire", "null", "fetch", {"default": 80}),
    Row("MPI_Compare_and_swap of 8 B, null wire", "null", "swap", {"default": 80}),
    Row("MPIX_Put_virtual_addr of 8 B, null wire", "null", "put-virtual", {}, own=True),
    Row("MPI_Wait on a finished request", "null", "wait", {"default": 30, "optimised": 15}, locks=0),
    Row("MPI_Send, shared memory", "shm", "send", {"default": 140, "optimised": 80}, NOTHING_SLOW, locks=1),
    Row("MPI_Isend, shared memory", "shm", "isend", {"default": 140, "optimised": 80}, NOTHING_SLOW, locks=1),
    Row("MPI_Recv of an arrived message", "shm", "recv", {"default": 180, "optimised": 110}, locks=1),
    Row("Isend x 64 + Waitall, per message", "shm", "isend-burst", {"default": 180, "optimised": 100}),
    Row("Irecv x 64 + Waitall, per message", "shm", "irecv-burst", {"default": 220, "optimised": 140}),
    Row("MPI_Irecv, shared memory", "shm", "irecv", {}, locks=1),
    Row("Start + Wait of a persistent send", "shm", "start-send", {}, NOTHING_SLOW, locks=1),
    Row("Start + Wait of a persistent receive", "shm", "start-recv", {}, locks=3),
    Row("Mprobe + Mrecv of an arrived message", "shm", "match", {}),
    Row("MPI_Pready of 8 B, into the receiver's buffer", "shm", "pready", {"default": 60}, {"atomic": 0, "indirect": 0, "plt": 0}, locks=0),
    Row("MPI_Parrived of an arrived partition", "shm", "parrived", {"default": 28}, {"atomic": 0, "indirect": 0, "plt": 0}, locks=0),
    Row("MPI_Allreduce of 8 B, 2 ranks", "shm", "allreduce", {"default": 400}, {"atomic": 1}),
    Row("MPI_Barrier, 2 ranks", "shm", "barrier", {"default": 200}, {"atomic": 1}),
    Row("MPI_Bcast of 8 B, at the root of 2", "shm", "bcast", {"default": 250}),
    Row("MPI_Reduce of 8 B, at the root of 2", "shm", "reduce", {"default": 450}),
    Row("MPI_Gather of 8 B, at the root of 2", "shm", "gather", {"default": 550}),
    Row("MPI_Scatter of 8 B, at the root of 2", "shm", "scatter", {"default": 450}),
    Row("MPI_Allgather of 8 B, 2 ranks", "shm", "allgather", {"default": 450}),
    Row("MPI_Alltoall of 8 B, 2 ranks", "shm", "alltoall", {"default": 450}),
    Row("MPI_Reduce_scatter_block of 8 B, 2 ranks", "shm", "reduce-scatter", {"default": 400}),
    Row("MPI_Scan of 8 B, first of 2 ranks", "shm", "scan", {"default": 350}),
    Row("MPI_Alltoallv of 8 B, 2 ranks", "shm", "alltoallv", {"default": 700}),
    Row("Start + Wait of a persistent MPI_Allreduce of 8 B", "shm", "start-allreduce", {}),
    Row("MPI_Neighbor_alltoall of 8 B, two neighbours", "shm", "neighbours", {}),
    Row("Its messages: 2 Irecv, 2 Isend, Waitall", "shm", "neighbours-messages", {}),
    Row("OPI_Give, shared memory", "shm", "give", {"default": 150, "optimised": 90}, NOTHING_SLOW, own=True),
    Row("OPI_Take of an arrived buffer", "shm", "take", {"default": 180, "optimised": 110}, own=True),
    Row("OPI_Free + OPI_Alloc", "shm", "free-alloc", {}, {"atomic": 0, "indirect": 0, "plt": 0}, own=True),
    Row("Irecv x 64 + Waitall behind 1 posted", "shm", "posted-1", {}),
    Row("Irecv x 64 + Waitall behind 10^4 posted", "shm", "posted-10000", {}, near="Irecv x 64 + Waitall behind 1 posted"),
    Row("MPI_Recv behind 1 unexpected", "shm", "unexpected-1", {}),
    Row("MPI_Recv behind 10^4 unexpected", "shm", "unexpected-10000", {}, near="MPI_Recv behind 1 unexpected"),
)


class Failed(Exception):
    pass


def call(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command[:6]))} ...: " + (done.stderr.strip() or done.stdout.strip())[-600:])
    return done.stdout


def compiler_of(library):
    """The compiler that made the library: counts of another one are another series."""
    text = call(["readelf", "-p", ".comment", str(library)])
    found = re.search(r"(GCC|clang)[^\n]*?(\d+\.\d+)\.\d+", text)
    return f"{found[1]} {found[2]}" if found else "unknown compiler"


def build_driver(out, flags, inputs, name="counted"):
    program = out / name
    call(["cc", *FLAGS, *flags, str(HERE / f"{name}.c"), str(HERE.parent / "mpi" / "common.c"), "-o", str(program),
          *map(str, inputs)])
    return program


def shared_driver(root, out, name="counted"):
    return build_driver(out, ["-I", str(root / "include")], [root / "lib" / "libmpi_abi.so.1"], name)


def variant(root, build):
    """The library once more, without what the build leaves out; made on the first use, then only kept up to date."""
    if build in ("default", "multiple"):
        return root
    tree = root / build
    source = libraries.PROJECT
    if not (source / "CMakeLists.txt").exists():
        raise Failed("the optimised build needs the sources")
    if not (tree / "build.ninja").exists():
        call(["cmake", "-S", str(source), "-B", str(tree), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
              *OFF[build], "-DWEFT_TESTS=OFF"])
    call(["cmake", "--build", str(tree), "--target", "mpi_abi_static" if build == "optimised" else "mpi_abi"])
    return tree


def optimised_driver(tree, out, name="counted"):
    archive = tree / "lib" / "libmpi_abi.a"
    return build_driver(out, ["-flto", "-I", str(tree / "include")], [archive, "-lpthread", "-ldl"], name)


def valgrind(out, slope):
    command = ["valgrind", "--quiet", "--tool=callgrind", "--dump-instr=yes",
               f"--callgrind-out-file={out}/callgrind.%p"]
    if slope:
        return [*command, "--collect-atstart=no"]
    return [*command, *(f"--toggle-collect={prefix}MPI_{name}" for name in COUNTED for prefix in ("", "P")),
            *(f"--toggle-collect={name}" for name in COUNTED_OWN)]


def run_counted(program, wire, how, launch, env, out):
    """Runs one wire's phases; the dumps land in `out`. `how`: nothing, "slope" or "multiple"."""
    tail = [str(program), wire, *how]
    under = [*valgrind(out, "slope" in how), *tail]
    if wire == "null":
        command, env = under, {**env, "WEFT_WIRE": "null"}
    else:
        command = [*launch, "-n", "1", *under, ":", "-n", "1", "env", f"WEFT_SPIN_POLLS={PATIENT}", *tail]
    try:
        runner.execute(command, env, timeout_s=600)
    except runner.Broken as why:
        raise Failed(str(why)) from None


def usual(values):
    """The lower quartile: in some repetitions the ring comes to its end, or the peer is late."""
    return sorted(values)[len(values) // 4]


def per_call(measured, phase, slope):
    costs = {n: usual(values) for n, values in measured[phase].items()}
    if not slope:
        return costs[LONG] / LONG
    empty = {n: usual(values) for n, values in measured["empty"].items()}
    return (costs[LONG] - costs[SHORT] - empty[LONG] + empty[SHORT]) / (LONG - SHORT)


def rates_of(args, build, way, work):
    """What rates.measure() finds of one build."""
    place = work / build
    place.mkdir(parents=True)
    tree = variant(args.root, build)
    program = (optimised_driver if build == "optimised" else shared_driver)(tree, place, "rates")
    try:
        return rates.measure(program, {**environment(), "LD_LIBRARY_PATH": str(tree / "lib")}, way, [args.root / "bin" / "mpiexec"])
    except (OSError, subprocess.SubprocessError) as why:
        raise Failed(str(why)) from None


def present_rates(args, work):
    """Every build in turn: the rates of one are its medians, so that what disturbed a few repetitions does not count."""
    shown = [row for build in args.build or ["default", "optimised"]
             for gap, found in rates_of(args, build, args.over, work) for row in rates.rows(build, gap, found)]
    print(f"1-byte messages {rates.WAYS[args.over][0]}, windows of 64; the paper's best: 132.8 M/s, 16.6 to 18.8 cycles")
    print(table(["build", "gap", "call", "M/s", "quartiles", "cycles"], shown, left=3))


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(libraries.FOREIGN)}


@dataclass
class Counted:
    """One build's rows: instructions per call, what else a call executed, and the dumps behind both."""
    counts: dict
    kinds: dict
    files: dict
    reasons: dict = field(default_factory=dict)

    def of(self, what):
        return {"count": self.counts[what], **self.kinds.get(what, {})}


def collect(measured, files, wire, slope, into, library=None, peer=False):
    special = callgrind.kinds_in(library) if library else None
    for row in ROWS:
        if row.wire != wire or (peer and row.own):
            continue
        if row.phase not in measured:
            raise Failed(f"callgrind left no counts for {row.what}")
        into.counts[row.what] = round(per_call(measured, row.phase, slope), 2)
        into.files[row.what] = files[row.phase, LONG]
        if library:
            into.kinds[row.what] = callgrind.kinds_executed(files[row.phase, LONG], library.name, special, LONG)


def count_build(args, build, work):
    """One build of Weft, over both wires."""
    slope = build == "optimised"
    how = ["slope"] if slope else ["multiple"] if build == "multiple" else []
    tree = variant(args.root, build)
    program = (optimised_driver if slope else shared_driver)(tree, work)
    env = {**environment(), "LD_LIBRARY_PATH": str(tree / "lib")}
    result = Counted({}, {}, {})
    for wire in ("null",) if args.null else ("null", "shm"):
        out = work / wire
        out.mkdir()
        run_counted(program, wire, how, [str(args.root / "bin" / "mpiexec")], env, out)
        measured, files = callgrind.phases(out)
        collect(measured, files, wire, slope, result, None if slope else tree / "lib" / "libmpi_abi.so.1")
        if args.reasons:
            explain(files, wire, slope, reasons.Sources(libraries.PROJECT, tree), result)
    return result


def explain(files, wire, slope, sources, into):
    """Divides each row's count by reason. The parts must add up to it."""
    for row in (r for r in ROWS if r.wire == wire):
        parts = reasons.per_call(sources, files, row.phase, slope, LONG, SHORT)
        if abs(sum(parts.values()) - into.counts[row.what]) > 0.01:
            raise Failed(f"{row.what}: {sum(parts.values()):g} instructions by reason, {into.counts[row.what]:g} in all")
        into.reasons[row.what] = {reason: round(cost, 2) for reason, cost in parts.items()}


def count_peer(args, name, work):
    """A peer's shared-memory rows, counted the same way by the same program."""
    found, absent = libraries.discover(args.root, [name])
    if not found:
        raise Failed(f"{name}: {absent.get(name, 'not here')}")
    peer = found[0]
    home = pathlib.Path(peer.launch[0]).resolve().parent.parent
    if name.startswith("openmpi"):
        program = work / "counted"
        call([str(home / "bin" / "mpicc"), *FLAGS, str(HERE / "counted.c"), str(HERE.parent / "mpi" / "common.c"), "-o",
              str(program)])
    else:
        header = work / "include"
        header.mkdir()
        shutil.copy(home / "include" / "mpi_abi.h", header / "mpi.h")
        program = build_driver(work, ["-I", str(header)], [home / "lib" / "libmpi_abi.so.1"])
    out = work / "shm"
    out.mkdir()
    run_counted(program, "shm", [], peer.launch, peer.environment(), out)
    result = Counted({}, {}, {})
    collect(*callgrind.phases(out), "shm", False, result, peer=True)
    return result


def said_of_threads(row, now, single):
    """What is wrong with a row counted under MPI_THREAD_MULTIPLE, beside its counts below that."""
    if row.locks is None:
        return []
    taken, more = now["atomic"] - single["atomic"], now["count"] - single["count"]
    said = [f"{taken:g} LOCKS, not {row.locks}"] if abs(taken - row.locks) > 0.05 else []
    return said + ([f"{more:g} MORE for threads"] if more > MORE_FOR_A_LOCK * row.locks + SLACK[row.wire] else [])


def verdict(row, build, now, base, near=None):
    """What to say about one row, and whether anything in it grew: since the baseline, or over the count of the row `near`."""
    said = []
    if not base:
        said.append("new")
    grown = [kind for kind, value in now.items()
             if base and value > base.get(kind, value) + (SLACK[row.wire] if kind == "count" else 0.05)]
    said += [f"{kind} GREW from {base[kind]:g}" for kind in grown]
    if base and now["count"] < base["count"] - 1:
        said.append(f"was {base['count']:g}")
    if row.budget.get(build, now["count"]) < now["count"]:
        said.append("over budget")
    said += [f"{kind} over {most:g}" for kind, most in row.most.items() if now.get(kind, 0) > most and build != "multiple"]
    deeper = near is not None and now["count"] > 1.05 * near
    if deeper:
        said.append(f"GREW with depth from {near:g}")
    return ", ".join(said), bool(grown) or deeper


def judge(row, build, result, base):
    counted = result[build]
    said, grew = verdict(row, build, counted.of(row.what), base.get(build, {}).get(row.what), counted.counts.get(row.near))
    dearer = said_of_threads(row, counted.of(row.what), result["default"].of(row.what)) if build == "multiple" and "default" in result else []
    return ", ".join([said, *dearer] if said else dearer), grew or bool(dearer)


def store(compiler, result):
    known = json.loads(BASELINES.read_text()) if BASELINES.exists() else {}
    mine = known.setdefault(compiler, {})
    for build, counted in result.items():
        mine.setdefault(build, {}).update({what: counted.of(what) for what in counted.counts})
    BASELINES.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def parse():
    parser = argparse.ArgumentParser(prog="weft count", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", "--build-dir", default=libraries.default_root(), type=pathlib.Path)
    parser.add_argument("--build", choices=BUILDS, action="append", help="only this one (default, multiple and optimised)")
    parser.add_argument("--null", action="store_true", help="only the null wire")
    parser.add_argument("--reasons", action="store_true", help="divide each count by reason, and print the paper's table beside it")
    parser.add_argument("--rates", action="store_true", help="messages per second of one core instead, in every build that is named")
    parser.add_argument("--over", choices=rates.WAYS, default="null", help="what --rates sends over: the null wire, simulated links, shared memory")
    parser.add_argument("--staircase", action="store_true", help="count every build on the null wire, by reason")
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="where two builds differ, by reason: names of builds, or files of --json")
    parser.add_argument("--check", action="store_true", help="fail when a count has grown over its baseline")
    parser.add_argument("--update", action="store_true", help="make today's counts the baseline of this compiler")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--annotate", metavar="ROW", help="where the instructions of rows named like this go")
    parser.add_argument("--lines", action="store_true", help="with --annotate: line by line")
    parser.add_argument("--library", help="count this peer instead (mpich, impi, openmpi, openmpi-ucx)")
    parser.add_argument("--classes", action="store_true",
                        help="instead: what inlining saves applications, by where their datatypes come from (classes.py)")
    parser.add_argument("--report", type=pathlib.Path, metavar="FOLDER", help="instead: all tables and pictures of docs/reproduction/critical-path.md")
    parser.add_argument("--keep", type=pathlib.Path, help="leave callgrind's files in this folder")
    given = sys.argv[1:]
    args = parser.parse_args(["--diff", *given[1:]] if given[:1] == ["diff"] else given)   # weft count diff A B
    args.root = args.root.resolve()
    if args.staircase:
        args.build, args.null, args.reasons = ["default", *OFF], True, True
    if args.diff:
        args.build, args.reasons = [name for name in args.diff if name in BUILDS], True
    return args


def count(args, work):
    """{build: Counted}"""
    result = {}
    builds = [args.library] if args.library else args.build if args.build is not None else ["default", "multiple", "optimised"]
    for name in builds:
        place = work / name
        place.mkdir(parents=True)
        result[name] = count_peer(args, name, place) if args.library else count_build(args, name, place)
    return result


def grown_builds(result, base):
    return [build for build, counted in result.items()
            if any(judge(row, build, result, base)[1]
                   for row in ROWS if row.what in counted.counts)]


def count_again(args, work, result, base, times=4):
    """On a busy machine the peer may be away while it should drain the ring, and the counted rank then does more than the
    path itself: what seems to have grown is counted again, and the least of each row is its count."""
    for n in range(times):
        builds = grown_builds(result, base)
        if not builds:
            return
        for build in builds:
            place = work / f"{build}-again-{n}"
            place.mkdir()
            more, counted = count_build(args, build, place), result[build]
            for what, value in more.counts.items():
                if value < counted.counts[what]:
                    for kept, new in ((counted.counts, more.counts), (counted.kinds, more.kinds), (counted.files, more.files)):
                        if what in new:
                            kept[what] = new[what]


def present(args, compiler, result, base):
    """Prints the table; returns the names of the rows that grew."""
    rows, shown, grown = [], [], []
    for build, counted in result.items():
        for row in (r for r in ROWS if r.what in counted.counts):
            now, budget = counted.of(row.what), row.budget.get(build)
            said, grew = judge(row, build, result, base)
            if grew:
                grown.append(f"{row.what} ({build})")
            why = {"reasons": counted.reasons[row.what]} if row.what in counted.reasons else {}
            rows.append({"what": row.what, "build": build, "budget": budget, "said": said, **now, **why})
            kinds = [f"{now[k]:g}" if k in now else "" for k in callgrind.KINDS]
            shown.append([row.what, build, f"{now['count']:.1f}", budget or "-", *kinds, said])
    if args.json:
        print(json.dumps({"compiler": compiler, "rows": rows}, indent=1))
    else:
        print(f"instructions per call, 8 bytes, {compiler}; of them atomic read-modify-writes, indirect and PLT calls")
        print(table(["path", "build", "count", "budget", *callgrind.KINDS, ""], shown, left=2))
    return grown


def part_of(parts, reason):
    return sum(parts[m] for m in reasons.MANDATORY) if reason == "mandatory" else parts[reason]


def present_reasons(result):
    """Every count by reason, then the paper's table beside Weft's, and the staircase where all its builds were counted."""
    for build, counted in result.items():
        print(f"\n{build}: instructions per call by reason")
        print(table(["path", *reasons.CATEGORIES, "all"],
                    [[what, *(f"{parts[c]:.1f}" if parts[c] else "" for c in reasons.CATEGORIES), f"{counted.counts[what]:.1f}"]
                     for what, parts in counted.reasons.items()], left=1))
    if "default" in result:
        mine = [result["default"].reasons[what] for what in STAIRS]
        print("\nthe paper's Table 1: default build")
        print(table(["reason", "Isend, paper", "Isend, Weft", "Put, paper", "Put, Weft"],
                    [[reason, isend, f"{part_of(mine[0], reason):.1f}", put, f"{part_of(mine[1], reason):.1f}"]
                     for reason, (isend, put) in PAPER_REASONS.items()], left=1))
    if all(build in result for build in PAPER_STAIRS):
        print("\nthe staircase: all instructions")
        print(table(["build", "Isend, paper", "Isend, Weft", "Put, paper", "Put, Weft"],
                    [[build, isend, f"{result[build].counts[STAIRS[0]]:.1f}", put, f"{result[build].counts[STAIRS[1]]:.1f}"]
                     for build, (isend, put) in PAPER_STAIRS.items()], left=1))


def reasons_of(name, result):
    """{row: {reason: instructions}} of a build that was counted, or of a file."""
    if name in result:
        return result[name].reasons
    try:
        rows = json.loads(pathlib.Path(name).read_text())["rows"]
    except (OSError, ValueError, KeyError) as why:
        raise Failed(f"{name} is neither a build nor a file of --json: {why}") from None
    if len({row["build"] for row in rows}) != 1 or not all("reasons" in row for row in rows):
        raise Failed(f"{name} does not hold one build by reason: make it by --build ... --reasons --json")
    return {row["what"]: row["reasons"] for row in rows}


def present_difference(names, result):
    before, after = (reasons_of(name, result) for name in names)
    rows = []
    for what in (w for w in before if w in after):
        change = {c: after[what][c] - before[what][c] for c in reasons.CATEGORIES}
        if any(abs(v) >= 0.05 for v in change.values()):
            rows.append([what, *(f"{change[c]:+.1f}" if abs(change[c]) >= 0.05 else "" for c in reasons.CATEGORIES),
                         f"{sum(change.values()):+.1f}"])
    print(f"\n{names[1]} less {names[0]}: instructions per call by reason")
    print(table(["path", *reasons.CATEGORIES, "all"], rows, left=1))


def annotate(args, result):
    for build, counted in result.items():
        for what, file in counted.files.items():
            if args.annotate.lower() in what.lower():
                print(f"\n{what}, {build}: instructions per call by function and file")
                callgrind.annotate(file, LONG, args.lines)


def main():
    args = parse()
    if not shutil.which("valgrind"):
        print("weft count: valgrind is not installed", file=sys.stderr)
        return BROKEN
    with tempfile.TemporaryDirectory(prefix="weft-count-") as scratch:
        if args.classes:
            import classes  # which needs this module
            return classes.run(args.root, args.keep or pathlib.Path(scratch), args.json)
        try:
            compiler = args.library or compiler_of(args.root / "lib" / "libmpi_abi.so.1")
            work = args.keep or pathlib.Path(scratch)
            if args.rates:
                present_rates(args, work)
                return 0
            if args.report:
                import report  # which needs this module
                return report.run(args, work)
            base = json.loads(BASELINES.read_text()).get(compiler, {}) if BASELINES.exists() else {}
            result = count(args, work)
            if args.check and not args.library:
                count_again(args, work, result, base)
        except Failed as why:
            print(f"weft count: {why}", file=sys.stderr)
            return BROKEN
        grown = present(args, compiler, result, base)
        if args.annotate:
            annotate(args, result)
        if args.diff:
            present_difference(args.diff, result)
        elif args.reasons and not args.json:
            present_reasons(result)
    if args.update and not args.library:
        store(compiler, result)
    if args.check and not base:
        print(f"weft count: there is no baseline for {compiler}; the counts are only reported")
    if args.check and grown:
        print("weft count: grown: " + "; ".join(grown) + "\nweft count: where they go: --annotate ROW --lines; if the "
              "growth is meant: --update, and say why in the commit", file=sys.stderr)
        return GREW
    return 0


if __name__ == "__main__":
    sys.exit(main())
