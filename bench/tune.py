#!/usr/bin/env python3
"""`weft tune`: finds what suits this machine, and writes it to a file.

  weft tune --heap [--out FILE]   for WEFT_TUNED: from which size on a message in the shared heap is copied from where it lies
                                  (WEFT_MAPPED_MIN), from which on by both sides (WEFT_MAPPED_BOTH), and in what blocks
                                  (WEFT_MAPPED_BLOCK)
  weft tune --coll [--out FILE]   for WEFT_COLL_TABLE: which algorithm each collective takes, by members and bytes

--heap: two ranks, buffers from MPI_Alloc_mem, rewritten before each send: latency and windows of 64 messages, interleaved launches. A value
other than the shipped one is written only where the 95 % interval of the ratio of times says that it is faster.

--coll: launches of each algorithm and as shipped, interleaved. A row is written where the 95 % interval says that an algorithm is
faster, by 10 % or more, and a second measurement of the chosen rows says so again. All sizes should take less than ten minutes on
an idle machine, --short less than four. --results DIR keeps every number as JSON, and a picture of each operation.
"""
import argparse
import itertools
import pathlib
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import coll, coll_tuning, libraries, machine, results, runner, tuning  # noqa: E402
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


def begin(args):
    """The library, what is known of the machine, and a caption of it; says what may disturb."""
    found, absent = libraries.discover(args.root, ["weft"])
    if not found:
        raise runner.Broken(absent.get("weft", "Weft is not here"))
    about = machine.describe()
    print(machine.caption(about))
    for warning in machine.warnings(about):
        print("note: " + warning)
    return found[0], about, machine.caption(about)


def tune_heap(args):
    library, _, caption = begin(args)
    settings = tuning.candidates()
    samples = measure(library, settings, args.reps, Progress(args.reps * len(settings) * len(TESTS)), args.window)
    print(table(tuning.HEAD, tuning.rows(samples), left=1))
    chosen = tuning.choose(samples)
    text = tuning.file_text(chosen, caption, library.version, samples, args.reps)
    args.out.write_text(text, encoding="utf-8")
    print(f"\n{text}\nWritten to {args.out}; WEFT_TUNED={args.out.resolve()} uses it.")
    return 0


def coll_sizes(args):
    return lambda operation: coll.sizes_of(operation, coll.SIZES, 32 if args.short else coll.STEP)


def measure_coll(library, args, plan, progress):
    """plan: (ranks, {operation: algorithm's name}, variables) for each launch; interleaved."""
    samples = coll_tuning.Samples()
    step = 32 if args.short else coll.STEP
    for rep, (ranks, names, env) in itertools.product(range(args.reps), plan):
        progress.begin(f"{ranks} ranks, {rep + 1} of {args.reps}")
        found = runner.bench(library, ranks, ["coll", "--ops", ",".join(names), "-m", f"{coll.SIZES[0]}:{coll.SIZES[1]}", "--step", step,
                                              "-r", 3, "-t", args.window, "-w", 2], timeout_s=300, env=env)
        for line in found:
            samples.add(ranks, line["test"], line["bytes"], names[line["test"]], rep, line["median"])
        progress.step()
    return samples


def same(operations, name):
    return {operation: name for operation in operations}


def confirm(library, args, rows, about, progress):
    """Measures once more what was chosen, as the table that would be written."""
    by_ranks = {row.ranks: sorted({r.operation for r in rows if r.ranks == row.ranks}) for row in rows}
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as chosen:
        chosen.write(coll_tuning.file_text(rows, args.ranks, coll_sizes(args), about, "", "", args.reps))
        chosen.flush()
        plan = [launch for n, operations in by_ranks.items() for launch in (
            (n, same(operations, coll_tuning.SHIPPED), {}), (n, same(operations, coll_tuning.CHOSEN), {"WEFT_COLL_TABLE": chosen.name}))]
        samples = measure_coll(library, args, plan, progress)
    return coll_tuning.confirmed(samples, rows, coll_sizes(args))


def keep_results(library, args, samples, about, caption):
    names = {"weft": "as shipped"} | {a: a for o in args.ops for a in coll_tuning.ALGORITHMS[o]}
    session = types.SimpleNamespace(labels=names, found=[library], broken={})
    data = coll_tuning.collected(samples, args.ranks, args.ops, coll_sizes(args))
    results.write(session, about, caption, "coll", {"data": data}, args.results, not args.no_picture)


def tune_coll(args):
    library, about, caption = begin(args)
    if told := sorted(about["settings"].keys() & {"WEFT_COLL", "WEFT_COLL_TABLE", "WEFT_COLL_FORCE"}):
        raise runner.Broken(f"{', '.join(told)} must not be set: what is shipped could not be measured")
    forced = [(column, coll_tuning.forced(column)) for column in coll_tuning.launches(args.ops)]
    plan = [(n, names, env) for n in args.ranks for names, env in [(same(args.ops, coll_tuning.SHIPPED), {}), *forced]]
    progress = Progress(args.reps * (len(plan) + 2 * len(args.ranks)))
    samples = measure_coll(library, args, plan, progress)
    rows = [row for o in args.ops for n in args.ranks for row in coll_tuning.choose(samples, n, o, coll_sizes(args)(o))]
    kept = confirm(library, args, rows, about, progress)
    progress.clear()
    print(table(coll_tuning.HEAD, coll_tuning.report(samples, kept), left=1) if kept else "Nothing is surely faster than what is shipped.")
    print(f"{len(rows)} rows were faster at first, {len(kept)} of them again.")
    text = coll_tuning.file_text(kept, args.ranks, coll_sizes(args), about, caption, library.version, args.reps)
    args.out.write_text(text, encoding="utf-8")
    print(f"\n{text}\nWritten to {args.out}; WEFT_COLL_TABLE={args.out.resolve()} uses it.")
    keep_results(library, args, samples, about, caption)
    return 0


def operations(text):
    found = text.split(",")
    if not set(found) <= set(coll_tuning.ALGORITHMS):
        raise argparse.ArgumentTypeError(f"some of {','.join(coll_tuning.ALGORITHMS)}")
    return found


def numbers(text):
    found = sorted({int(n) for n in text.split(",")})
    if found[0] < 2:
        raise argparse.ArgumentTypeError("two ranks at least")
    return found


def main():
    parser = argparse.ArgumentParser(prog="weft tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--heap", action="store_true", help="the thresholds of messages in the shared heap")
    what.add_argument("--coll", action="store_true", help="the algorithms of collectives")
    parser.add_argument("--out", type=pathlib.Path, help="the file to write (weft-tuned.conf, weft-coll.conf)")
    parser.add_argument("--short", action="store_true", help="--coll: five sizes instead of ten, at 2 and 8 ranks")
    parser.add_argument("--ops", type=operations, default=list(coll_tuning.ALGORITHMS), help="--coll: operations, separated by commas (all)")
    parser.add_argument("--ranks", type=numbers, help="--coll: numbers of ranks, separated by commas (2,4,8)")
    parser.add_argument("--results", type=pathlib.Path, help="--coll: folder for all numbers as JSON, and pictures")
    parser.add_argument("--no-picture", action="store_true", help="--results: the numbers alone")
    parser.add_argument("--reps", type=int, default=7, help="interleaved launches of each setting (7)")
    parser.add_argument("--window", type=float, default=3, help="milliseconds of a window (3)")
    parser.add_argument("--root", "--build-dir", default=libraries.default_root(), type=pathlib.Path, help="build tree or installation of Weft")
    args = parser.parse_args()
    if args.reps < 1:
        parser.error("--reps: at least one")
    args.out = args.out or pathlib.Path("weft-coll.conf" if args.coll else "weft-tuned.conf")
    args.ranks = args.ranks or ([2, 8] if args.short else [2, 4, 8])
    try:
        sys.exit(tune_coll(args) if args.coll else tune_heap(args))
    except runner.Broken as why:
        print(f"weft tune: {why}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
