#!/usr/bin/env python3
"""`weft bench`: Weft measured beside the other MPI libraries installed here.

  weft bench bars [--group NAME] [--part TEXT]  every bar the project sets itself, and whether it is met
  weft bench busy [options]                 beside hogs, a second job, a quota: how much every library still gets done
  weft bench sweep [options]                latency and bandwidth of every power of two, at several numbers of ranks
  weft bench run TEST [options]             one test of weft-bench on every library, interleaved
  weft bench list                           the libraries that can be measured here, and why others cannot
"""
import argparse
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import bars, busy, libraries, runner, sweep  # noqa: E402
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


def numbers(text):
    return [int(part) for part in text.split(",")]


def names(text):
    return text.split(",")


def size_range(text):
    lo, _, hi = text.partition(":")
    return int(lo), int(hi or lo)


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
    if rest and args.command != "run":
        parser.error("unknown arguments: " + " ".join(rest))
    args.options = [r for r in rest if r != "--"]  # whatever else weft-bench understands
    sys.exit(args.act(args))


if __name__ == "__main__":
    main()
