#!/usr/bin/env python3
"""Real programs, built unmodified with Weft's compiler wrappers, and the same binaries on other MPI libraries.

usage: programs.py all|fetch|build|check|time|table --build-dir BUILD [--only REGEX] [--hogs] ...
  fetch    FFTW, HPCC and LAMMPS from Debian's source packages; MPICH and Intel MPI by pip; all under BUILD/apps
  build    compiles them with BUILD/bin/mpicc and mpicxx
  check    the same results on Weft and on MPICH; exit status 1 where they differ
  time     interleaved repetitions on Weft, MPICH and Intel MPI, added to BUILD/apps/times.jsonl; then the table
  table    what was measured with the present build: Weft's time by the better peer's; exit status 1 where Weft is slower
  all      fetch, build, check
  --shared-heap   check: Weft takes all memory from the shared heap; time and table: Weft so beside Weft as it comes, in BUILD/apps/heap-times.jsonl
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch  # noqa: E402
from programs import base, compare, fftw, hpcc, lammps, timing  # noqa: E402
from programs.debian import Debian  # noqa: E402
from weft_bench import beside, runner  # noqa: E402


def bring(programs, debian, build_dir):
    missing = debian.missing()
    if missing:
        print("fetching needs Debian's tools; missing here: " + ", ".join(missing))
        return 1
    for program in programs:
        print(f"fetching {program.name}", flush=True)
        program.fetch()
    env = fetch.clean_environment(WEFT_PEERS=str(base.peers_home(build_dir)))
    print(fetch.run(["sh", base.PROJECT / "bench/peers.sh", "mpich", "impi"], env=env), end="", flush=True)
    return 0


def compile_all(programs, jobs):
    for program in programs:
        print(f"building {program.name}", flush=True)
        program.build(jobs)
    return 0


def check(programs, build_dir, only, ours):
    """Runs every check on Weft and on MPICH and compares what they computed."""
    theirs = base.peer(build_dir, "mpich")
    bad = ran = 0
    for program in programs:
        for library in (ours, theirs):
            library.holds(program.binary)
        for one in program.checks:
            if only and not re.search(only, one.name):
                continue
            ran, results, took = ran + 1, [], []
            try:
                for library in (ours,) if one.alone else (ours, theirs):
                    start = time.monotonic()
                    results.append(one.results(library, one.ranks))
                    took.append(f"{library.label} {time.monotonic() - start:.1f} s")
                found = [] if one.alone else compare.differences(*results, one.tolerance)
            except base.Failed as why:
                found = [str(why)]
            print(f"{'FAILED' if found else 'same  '} {one.name} ({', '.join(took)})", flush=True)
            for line in found[:20]:
                print(f"    {line}", flush=True)
            bad += bool(found)
    print(f"{ran - bad} of {ran} checks passed on {ours.label} as on MPICH")
    return 1 if bad or not ran else 0


def measure(programs, libraries, record, args):
    timings = [t for p in programs for t in p.timings if not args.only or re.search(args.only, t.name)]
    for library in libraries:
        for program in programs:
            library.holds(program.binary)
    if args.fresh:
        record.unlink(missing_ok=True)
    state, until = "busy" if args.hogs else "idle", time.monotonic() + args.seconds
    with beside.hogs(args.build_dir.resolve() / "bench", runner.cpus() if args.hogs else []):
        timing.measure(timings, libraries, args.ranks, state, args.repeat, until, record)
    return timing.judge(record, libraries[0], libraries[1:])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n", 1)[1])
    parser.add_argument("what", choices=["all", "fetch", "build", "check", "time", "table"])
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="checks or measurements whose names match this")
    parser.add_argument("--programs", default="fftw,hpcc,lammps")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--ranks", type=int, default=2, help="ranks of a measurement")
    parser.add_argument("--repeat", type=int, default=7, help="repetitions of a measurement")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no more measurements after this time")
    parser.add_argument("--hogs", action="store_true", help="measure beside one busy process on each CPU")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--shared-heap", action="store_true", help="see above")
    args = parser.parse_args()
    build_dir = args.build_dir.resolve()
    area = build_dir / "apps"
    area.mkdir(parents=True, exist_ok=True)
    debian, weft = Debian(area), base.weft(build_dir)
    known = {m.__name__.rsplit(".", 1)[1]: m for m in (fftw, hpcc, lammps)}
    for name in args.programs.split(","):
        (area / name).mkdir(exist_ok=True)
    programs = [known[name].program(area, debian, weft) for name in args.programs.split(",")]
    ours = base.weft_in_heap(build_dir) if args.shared_heap else weft

    def beside_what():
        return [weft] if args.shared_heap else [base.peer(build_dir, name) for name in base.LABELS]
    record = area / ("heap-times.jsonl" if args.shared_heap else "times.jsonl")
    steps = {"fetch": lambda: bring(programs, debian, build_dir), "build": lambda: compile_all(programs, args.jobs),
             "check": lambda: check(programs, build_dir, args.only, ours),
             "time": lambda: measure(programs, [ours, *beside_what()], record, args),
             "table": lambda: timing.judge(record, ours, beside_what())}
    for step in ("fetch", "build", "check") if args.what == "all" else (args.what,):
        try:
            status = steps[step]()
        except (base.Failed, subprocess.CalledProcessError) as why:  # what the failing command printed stands above
            print(why)
            return 1
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
