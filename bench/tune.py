#!/usr/bin/env python3
"""`weft tune`: finds the values of Weft's few thresholds that suit this machine, and writes them to a file for WEFT_TUNED.

  weft tune --heap [--out FILE]   from which size on a message in the shared heap is copied from where it lies (WEFT_MAPPED_MIN), from
                                  which on by both sides (WEFT_MAPPED_BOTH), and in what blocks (WEFT_MAPPED_BLOCK)

Two ranks, buffers from MPI_Alloc_mem, rewritten before each send: latency and windows of 64 messages, interleaved launches. A value
other than the shipped one is written only where the 95 % interval of the ratio of times says that it is faster.
"""
import argparse
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import libraries, machine, runner, tuning  # noqa: E402
from weft_bench.text import Progress, table  # noqa: E402

TESTS = (("latency", True), ("bandwidth", False))   # whether less is better


def measure(library, settings, reps, progress, window_ms):
    """{(setting, test, size): {repetition: seconds-like value}}: less is better in all of them."""
    samples = {}
    for rep, setting, (test, less) in itertools.product(range(reps), settings, TESTS):
        progress.begin(f"{setting.name}: {test}, {rep + 1} of {reps}")
        args = [test, "-m", f"{tuning.SIZES[0]}:{tuning.SIZES[-1]}", "-r", 3, "-t", window_ms, "-w", 2, "--alloc-mem"]
        for line in runner.bench(library, 2, args, env=setting.variables()):
            value = sorted(line["samples"])[len(line["samples"]) // 2]
            samples.setdefault((setting, test, line["bytes"]), {})[rep] = value if less else 1 / value
        progress.step()
    progress.clear()
    return samples


def tune_heap(args):
    found, absent = libraries.discover(args.root, ["weft"])
    if not found:
        print(f"weft tune: {absent.get('weft', 'Weft is not here')}", file=sys.stderr)
        return 1
    about = machine.describe()
    print(machine.caption(about))
    for warning in machine.warnings(about):
        print("note: " + warning)
    settings = tuning.candidates()
    samples = measure(found[0], settings, args.reps, Progress(args.reps * len(settings) * len(TESTS)), args.window)
    print(table(tuning.HEAD, tuning.rows(samples), left=1))
    chosen = tuning.choose(samples)
    text = tuning.file_text(chosen, machine.caption(about), found[0].version, samples, args.reps)
    args.out.write_text(text, encoding="utf-8")
    print(f"\n{text}\nWritten to {args.out}; WEFT_TUNED={args.out.resolve()} uses it.")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="weft tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heap", action="store_true", required=True, help="the thresholds of messages in the shared heap")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("weft-tuned.conf"), help="the file to write (weft-tuned.conf)")
    parser.add_argument("--reps", type=int, default=7, help="interleaved launches of each setting (7)")
    parser.add_argument("--window", type=float, default=3, help="milliseconds of a window (3)")
    parser.add_argument("--root", "--build-dir", default=libraries.default_root(), type=pathlib.Path, help="build tree or installation of Weft")
    args = parser.parse_args()
    if args.reps < 1:
        parser.error("--reps: at least one")
    try:
        sys.exit(tune_heap(args))
    except runner.Broken as why:
        print(f"weft tune: {why}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
