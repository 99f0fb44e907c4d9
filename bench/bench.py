#!/usr/bin/env python3
"""`weft bench`: Weft measured beside the other MPI libraries installed here.

  weft bench bars [--group NAME] [--part TEXT]  every bar the project sets itself, and whether it is met
  weft bench busy [options]                 beside hogs, a second job, a quota: how much every library still gets done
  weft bench sweep [options]                latency and bandwidth of every power of two, at several numbers of ranks
  weft bench coll [options]                 every collective operation by size, ranks and form
  weft bench threads [options]              message rate, latency and startup of 1 to 16 threads that talk at once
  weft bench part TEST [options]            partitioned communication: overhead, perceived bandwidth, availability,
                                            early-bird, Sweep3D and Halo3D
  weft bench heap [options]                 the applications of apps/: messages, ownership, shared memory, fused loops
  weft bench apps [options]                 two applications at their limit of strong scaling, and the model of it
  weft bench figures [options]              figures of the paper on partitioned communication, and the page that shows them
  weft bench run TEST [options]             one test of weft-bench on every library, interleaved
  weft bench list                           the libraries that can be measured here, and why others cannot
"""
import argparse
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import bars, busy, coll, figures, heap, libraries, part, runner, studies, sweep, threads  # noqa: E402
from weft_bench.text import median, number, size_name, spread, table  # noqa: E402


def list_libraries(args):
    found, absent = libraries.discover(args.root, args.only)
    rows = [[lib.name, lib.label, " ".join(lib.launch)] for lib in found]
    print(table(["name", "library", "started by"], rows, left=3) if rows else "no library can be measured here")
    for name, why in absent.items():
        print(f"not here: {name}: {why}")
    return 0


def run_test(args):
    found, _ = libraries.discover(args.root, args.only)
    samples, units, status = {}, {}, 0
    for _ in range(args.reps):
        for library in found:
            try:
                lines = runner.bench(library, args.n, [args.test, *args.options], args.timeout)
            except runner.Broken as why:
                print(why, file=sys.stderr)
                status = 1
                continue
            for line in lines:
                units[line["test"]] = line["unit"]
                by_name = samples.setdefault((line["test"], line["bytes"]), {})
                by_name.setdefault(library.name, []).extend(line["samples"])
    for library in found:
        rows = []
        for (test, size), by_name in samples.items():
            values = by_name.get(library.name)
            if values:
                rows.append([test, size_name(size) if size else "", number(median(values)), units[test],
                             spread(values), len(values)])
        print(f"\n{library.label}")
        print(table(["test", "size", "median", "unit", "range", "n"], rows))
    return status


def run_bars(args):
    groups = [args.group] if args.group else bars.DEFAULT_GROUPS
    return bars.run(args.root, groups, args.reps or (2 if args.quick else 7), args.only, args.out, args.part)


def run_busy(args):
    conditions = [busy.Condition(ranks, hogs, args.nice, args.jobs, args.quota, args.apart)
                  for ranks, hogs in itertools.product(args.ranks, args.hogs)]
    # A second job must do what the measured one does, so each test is then a launch of its own.
    tests = args.tests or ([test for test, _, _ in bars.BUSY] if args.jobs > 1 else ["busy"])
    return busy.run(args.root, args.only, conditions, tests, args.reps, args.cpus, args.window)


def run_sweep(args):
    return sweep.run(args.root, args.only, args.ranks, args.sizes, args.tests, args.reps)


def run_coll(args):
    return coll.run(args.root, args.only, args.ranks, args.forms, args.ops, args.sizes, args.step, args.reps, args.out,
                    not args.no_picture)


def run_threads(args):
    return threads.run(args.root, args.only, args.tests, args.modes, args.threads, args.reps, args.out, not args.no_picture,
                       args.window)


def run_heap(args):
    if args.sweep and "=" not in args.sweep:
        raise SystemExit("weft bench: --sweep takes NAME=VALUE,VALUE,...")
    return heap.run(args.root, args.only, args.apps, args.reps, args.out, args.sweep, args.allocators, args.caches, not args.no_picture)


def run_apps(args):
    return studies.run(args.root, args.only, args.studies, args.ranks, args.orders, args.elements, args.reps, args.out, args.report,
                       not args.no_picture)


def run_figures(args):
    if args.more and not args.out:
        raise SystemExit("weft bench: --more needs --out")
    return figures.run(args.root, args.only, args.groups, args.reps, args.out, args.more, args.report, not args.no_picture)


def numbers(text):
    return [int(part) for part in text.split(",")]


def names(text):
    return text.split(",")


def size_range(text):
    lo, _, hi = text.partition(":")
    return int(lo), int(hi or lo)


def some_of(known):
    def parse(text):
        strange = set(names(text)) - set(known)
        if strange:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(strange))}: not one of {', '.join(known)}")
        return names(text)
    return parse


def add_output(command):
    command.add_argument("--out", type=pathlib.Path, help="folder for the numbers as JSON, and pictures")
    command.add_argument("--no-picture", action="store_true", help="the numbers alone")


def add_coll(commands):
    command = commands.add_parser("coll", help="collective operations by size, ranks and form")
    command.add_argument("--ranks", type=numbers, default=[2, 8], help="numbers of ranks, separated by commas (2,8)")
    command.add_argument("--sizes", type=size_range, default=coll.SIZES, help="LO:HI in bytes (8:1048576)")
    command.add_argument("--step", type=int, default=coll.STEP, help="sizes grow by this factor (4)")
    command.add_argument("--ops", type=some_of([coll.EMPTY, *coll.OPERATIONS]), default=list(coll.OPERATIONS),
                         help="some of " + ",".join([coll.EMPTY, *coll.OPERATIONS]))
    command.add_argument("--forms", type=some_of(coll.FORMS), default=["blocking"],
                         help="blocking, nonblocking, persistent, separated by commas (blocking)")
    command.add_argument("--reps", type=int, default=7, help="launches of each library (7)")
    add_output(command)
    command.set_defaults(act=run_coll)


def add_threads(commands):
    command = commands.add_parser("threads", help="threads that talk at once", description=threads.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--threads", type=numbers, default=[1, 2, 4, 8, 16], help="threads of each process (1,2,4,8,16)")
    command.add_argument("--modes", type=names, default=list(threads.MODES), help="separated by commas (the first five)")
    command.add_argument("--tests", type=some_of(threads.TESTS), default=["rate", "latency"],
                         help="rate, put, latency, startup (rate,latency)")
    command.add_argument("--reps", type=int, default=7, help="launches of each library (7)")
    command.add_argument("--window", type=float, default=200, help="milliseconds of a window (200)")
    add_output(command)
    command.set_defaults(act=run_threads)


def add_part(commands):
    suite = commands.add_parser("part", help="partitioned communication: metrics and patterns",
                                epilog="All other options go to weft-bench-part: --compute-time, --noise-type, ... (its -h lists them).")
    suite.add_argument("test", choices=part.TESTS)
    suite.add_argument("-n", type=int, default=2, help="ranks (2; patterns need a grid of them)")
    suite.add_argument("--threads", type=numbers, default=[1], help="threads of each rank, separated by commas (1)")
    suite.add_argument("--styles", type=names, default=list(part.STYLES), help="of a pattern: " + ",".join(part.STYLES))
    suite.add_argument("--reps", type=int, default=1, help="launches of each library; intervals are of launches from 6 on (1)")
    suite.add_argument("--prune", type=float, help="drop samples above median + PRUNE x median absolute deviation (none)")
    suite.add_argument("--timeout", type=float, default=120, help="seconds a launch may take (120)")
    suite.add_argument("--csv", help="write every sample to this file")
    suite.add_argument("--json", help="write settings, samples and summaries to this file")
    suite.add_argument("--plot", help="draw a picture into this file (needs matplotlib)")
    suite.set_defaults(act=part.run)


def add_heap(commands):
    command = commands.add_parser("heap", help="applications with and without shared memory")
    command.add_argument("--apps", type=some_of(heap.APPS), default=["fft2d", "lj", "opbench", "halo"],
                         help="some of " + ",".join(heap.APPS))
    command.add_argument("--reps", type=int, default=7, help="launches of each library (7)")
    command.add_argument("--sweep", help="NAME=VALUE,VALUE,...: on Weft alone, with each value of this variable")
    command.add_argument("--allocators", action="store_true",
                         help="on Weft alone, with libc's malloc, with the heap's allocator on private memory, and on shared memory")
    command.add_argument("--caches", type=numbers, nargs="?", const=[1024, 8192],
                         help="also simulate the caches, with data of so many bytes (1024,8192): minutes, and valgrind is needed")
    add_output(command)
    command.set_defaults(act=run_heap)


def add_apps(commands):
    command = commands.add_parser("apps", help="two application studies", description=studies.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--studies", type=some_of(studies.STUDIES), default=list(studies.STUDIES), help="sem, lj (both)")
    command.add_argument("--ranks", type=numbers, default=[2], help="2, 4, 8, separated by commas (2)")
    command.add_argument("--orders", type=numbers, default=studies.ORDERS, help="of the spectral elements (3,5,7)")
    command.add_argument("--elements", type=size_range, default=studies.ELEMENTS, help="LO:HI of a rank, doubling (1:128)")
    command.add_argument("--reps", type=int, default=7, help="launches of each library (7)")
    command.add_argument("--report", type=pathlib.Path, help="write the page with all tables to this file")
    add_output(command)
    command.set_defaults(act=run_apps)


def add_figures(commands):
    command = commands.add_parser("figures", help="figures of the paper on partitioned communication", description=figures.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--groups", type=some_of(figures.GROUPS), default=list(figures.GROUPS), help=", ".join(figures.GROUPS) + " (all)")
    command.add_argument("--reps", type=int, default=3, help="launches of each library (3); 0 with --more: the page alone")
    command.add_argument("--more", action="store_true", help="add to the numbers that --out holds")
    command.add_argument("--report", type=pathlib.Path, help="write the page with all tables to this file")
    add_output(command)
    command.set_defaults(act=run_figures)


def main():
    parser = argparse.ArgumentParser(prog="weft bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", "--build-dir", default=libraries.default_root(), type=pathlib.Path,
                        help="build tree or installation of Weft")
    parser.add_argument("--libraries", dest="only", type=lambda text: text.split(","),
                        help="measure only these, separated by commas")
    commands = parser.add_subparsers(dest="command", required=True)
    bar = commands.add_parser("bars", help="every bar, measured and judged")
    bar.add_argument("--group", choices=list(bars.GROUPS), help="only these; all with bars otherwise")
    bar.add_argument("--part", help="only measurements with one of these texts, separated by commas, in their names, and the "
                                    "bars they decide")
    bar.add_argument("--reps", type=int, help="interleaved repetitions (7)")
    bar.add_argument("--quick", action="store_true", help="two repetitions: to see that everything runs")
    bar.add_argument("--out", help="write everything as JSON to this file")
    bar.set_defaults(act=run_bars)
    beside = commands.add_parser("busy", help="beside hogs, a second job, a quota")
    beside.add_argument("--ranks", type=numbers, default=[2, 8], help="numbers of ranks, separated by commas (2,8)")
    beside.add_argument("--hogs", type=numbers, default=[0, 1, 2], help="hogs on each CPU, separated by commas (0,1,2)")
    beside.add_argument("--nice", type=int, default=0, help="nice value of the hogs (0)")
    beside.add_argument("--apart", action="store_true", help="hogs in groups of their own, as another user's are")
    beside.add_argument("--jobs", type=int, choices=(1, 2), default=1, help="jobs side by side (1)")
    beside.add_argument("--quota", type=int, default=0, help="percent of the CPUs' time the job may have; 0 for all")
    beside.add_argument("--cpus", type=int, default=2, help="CPUs everything runs on (2)")
    beside.add_argument("--tests", type=names, help="some of " + ",".join(test for test, _, _ in bars.BUSY))
    beside.add_argument("--reps", type=int, default=3, help="launches of each library (3)")
    beside.add_argument("--window", type=float, default=300, help="milliseconds each test has (300)")
    beside.set_defaults(act=run_busy)
    sizes = commands.add_parser("sweep", help="latency and bandwidth by size")
    sizes.add_argument("--ranks", type=numbers, default=[2], help="numbers of ranks, separated by commas (2)")
    sizes.add_argument("--sizes", type=size_range, default=(8, 4 << 20), help="LO:HI in bytes, doubling (8:4194304)")
    sizes.add_argument("--tests", type=names, default=["latency", "bandwidth"], help="latency, bandwidth, allreduce")
    sizes.add_argument("--reps", type=int, default=3, help="launches of each library (3)")
    sizes.set_defaults(act=run_sweep)
    add_coll(commands)
    add_threads(commands)
    add_part(commands)
    add_heap(commands)
    add_apps(commands)
    add_figures(commands)
    one = commands.add_parser("run", help="one test on every library")
    one.add_argument("test")
    one.add_argument("-n", type=int, default=2, help="ranks (2)")
    one.add_argument("--reps", type=int, default=3, help="launches (3)")
    one.add_argument("--timeout", type=float, default=120, help="seconds a launch may take (120)")
    one.set_defaults(act=run_test)
    commands.add_parser("list", help="libraries that can be measured here").set_defaults(act=list_libraries)
    for command in commands.choices.values():  # also behind the command
        command.add_argument("--libraries", dest="only", type=names, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    args, rest = parser.parse_known_args()
    if rest and args.command not in ("run", "part"):
        parser.error("unknown arguments: " + " ".join(rest))
    args.options = [r for r in rest if r != "--"]  # whatever else weft-bench or weft-bench-part understands
    sys.exit(args.act(args))


if __name__ == "__main__":
    main()
