#!/usr/bin/env python3
"""`weft bench`: Weft measured beside the other MPI libraries installed here.

  weft bench bars [--group core|launcher]   every bar the project sets itself, and whether it is met
  weft bench run TEST [options]             one test of weft-bench on every library, interleaved
  weft bench list                           the libraries that can be measured here, and why others cannot
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import bars, libraries, runner  # noqa: E402
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
    groups = [args.group] if args.group else list(bars.GROUPS)
    return bars.run(args.root, groups, args.reps or (2 if args.quick else 7), args.only, args.quick, args.out)


def main():
    parser = argparse.ArgumentParser(prog="weft bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", "--build-dir", default=libraries.default_root(), type=pathlib.Path,
                        help="build tree or installation of Weft")
    parser.add_argument("--libraries", dest="only", type=lambda text: text.split(","),
                        help="measure only these, separated by commas")
    commands = parser.add_subparsers(dest="command", required=True)
    bar = commands.add_parser("bars", help="every bar, measured and judged")
    bar.add_argument("--group", choices=list(bars.GROUPS), help="only these bars; all otherwise")
    bar.add_argument("--reps", type=int, help="interleaved repetitions (7)")
    bar.add_argument("--quick", action="store_true", help="two repetitions: to see that everything runs")
    bar.add_argument("--out", help="write everything as JSON to this file")
    bar.set_defaults(act=run_bars)
    one = commands.add_parser("run", help="one test on every library")
    one.add_argument("test")
    one.add_argument("-n", type=int, default=2, help="ranks (2)")
    one.add_argument("--reps", type=int, default=3, help="launches (3)")
    one.add_argument("--timeout", type=float, default=120, help="seconds a launch may take (120)")
    one.set_defaults(act=run_test)
    commands.add_parser("list", help="libraries that can be measured here").set_defaults(act=list_libraries)
    args, rest = parser.parse_known_args()
    if rest and args.command != "run":
        parser.error("unknown arguments: " + " ".join(rest))
    args.options = [r for r in rest if r != "--"]  # whatever else weft-bench understands
    sys.exit(args.act(args))


if __name__ == "__main__":
    main()
