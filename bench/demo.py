#!/usr/bin/env python3
"""`make demo`: two ranks, latency, bandwidth and message rate from 1 B to 4 MiB, as a table and a picture.

Weft and every peer found in venvs/ (see bench/peers.sh) are measured in the same run, in turn.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import libraries, machine, picture, sweep  # noqa: E402
from weft_bench.text import Progress, median, number, size_name, table  # noqa: E402

UNITS = {"latency": "µs, one way", "bandwidth": "GB/s, 64 messages in flight", "rate": "million messages/s"}
SHOWN = [1, 8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]


def tables(result):
    names = list(result["data"])
    for test, unit in UNITS.items():
        rows = []
        for size in SHOWN:
            values = [result["data"][n][test].get(size) for n in names]
            if any(values):
                rows.append([size_name(size), *(number(median(v)) if v else "-" for v in values)])
        print(f"\n{test.capitalize()} ({unit})")
        print(table(["size", *(result["labels"][n] for n in names)], rows))


def headline(result):
    data, labels = result["data"], result["labels"]
    peers = [n for n in data if n != "weft"]
    if "weft" not in data or not peers:
        return
    print()
    for test, size, best in (("latency", 8, min), ("rate", 8, max), ("bandwidth", 1 << 20, max)):
        mine = median(data["weft"][test][size])
        name = best(peers, key=lambda n: median(data[n][test][size]))
        other = median(data[name][test][size])
        print(f"{test} at {size_name(size)}: Weft {number(mine)}, best of the others {number(other)} "
              f"({labels[name]}), {number(other / mine if test == 'latency' else mine / other)} x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default=libraries.PROJECT / "build", type=pathlib.Path)
    parser.add_argument("--out", default=libraries.PROJECT / "demo-out", type=pathlib.Path)
    parser.add_argument("--libraries", help="names separated by commas; all that are installed otherwise")
    parser.add_argument("--reps", type=int, default=3, help="launches of every library and test (3)")
    parser.add_argument("--quick", action="store_true", help="one launch each, short windows")
    parser.add_argument("--no-picture", action="store_true", help="the tables and the numbers alone")
    args = parser.parse_args()
    found, absent = libraries.discover(args.build_dir, args.libraries.split(",") if args.libraries else None)
    if not found:
        raise SystemExit("demo: nothing to measure: " + "; ".join(f"{n}: {why}" for n, why in absent.items()))
    about = machine.describe()
    for warning in machine.warnings(about):
        print("note: " + warning, file=sys.stderr)
    reps = 1 if args.quick else args.reps
    progress = Progress(reps * len(found) * len(sweep.TESTS))
    data, broken = sweep.measure(found, reps, (1, 4 << 20), progress, window_ms=1 if args.quick else 3)
    progress.clear()
    order = [lib.name for lib in found if lib.name in data]
    result = {"kind": "sweep", "caption": f"{machine.caption(about)}; median, range shaded, n = {reps} launches each, 2 ranks pinned",
              "machine": about, "labels": {lib.name: lib.label for lib in found},
              "data": {name: data[name] for name in order}}
    print(result["caption"])
    tables(result)
    headline(result)
    for name, why in {**absent, **broken}.items():
        print(f"not in the comparison: {name}: {why}")
    args.out.mkdir(parents=True, exist_ok=True)
    data_file = args.out / "weft.json"
    data_file.write_text(json.dumps(result, indent=1), encoding="utf-8")
    if not args.no_picture:
        print("\n" + picture.save(data_file, args.out))
    if "weft" in broken or "weft" in absent and not args.libraries:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
