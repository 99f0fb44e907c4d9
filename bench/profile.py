#!/usr/bin/env python3
"""`weft profile`: how much of its time a program spends in communication, and what faster communication would bring.

  weft profile [--gain G] [--json FILE] COMMAND ...   runs the command, say `mpiexec -n 4 ./program`, with a library preloaded
                                                      that times its MPI calls; one report for each job that ends
  weft profile --project SHARE[,SHARE...] --gain G    the projection alone, for shares measured elsewhere, in percent

It works with every library that has the standard ABI, whatever its launcher; the program is not built again.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from weft_bench import libraries, project  # noqa: E402
from weft_bench.text import number, table  # noqa: E402


def preloaded(root):
    """The library of this build tree or installation."""
    for place in (root / "bench", root / "libexec" / "weft" / "bench"):
        if (place / "libweft-profile.so").exists():
            return place / "libweft-profile.so"
    raise SystemExit(f"weft profile: no libweft-profile.so under {root}: build first (make)")


def run(command, library):
    """The command's exit status and the reports of its jobs."""
    with tempfile.TemporaryDirectory(prefix="weft-profile-") as folder:
        path = pathlib.Path(folder) / "report"
        before = os.environ.get("LD_PRELOAD")
        env = os.environ | {"WEFT_PROFILE": str(path), "LD_PRELOAD": f"{library}:{before}" if before else str(library)}
        try:
            process = subprocess.Popen(command, env=env)
        except OSError as why:
            raise SystemExit(f"weft profile: {command[0]}: {why.strerror}") from None
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command's to answer
        status = process.wait()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return status if status >= 0 else 128 - status, [json.loads(line) for line in lines]


def print_job(job, gain):
    print(f"\n{job['ranks']} ranks, {job['threads']} threads that called MPI, {number(job['wall_s'])} s from MPI_Init to MPI_Finalize")
    print(f"communication: {100 * job['share']:.1f} % of the time (from {100 * job['least_share']:.1f} to {100 * job['most_share']:.1f} % "
          "of a rank's)")
    time = job["wall_s"] * job["threads"]
    rows = [[call["name"], call["category"], call["calls"], number(call["seconds"]), f"{100 * call['seconds'] / time:.2f}",
             "-" if call["mean_bytes"] is None else number(call["mean_bytes"])]
            for call in sorted(job["calls"], key=lambda call: -call["seconds"])]
    print(table(["call", "kind", "calls", "seconds", "% of time", "mean bytes"], rows, left=2))
    if gain:
        print_projection([job["share"]], gain)


def print_projection(shares, gain):
    rows = [[f"{100 * share:.3g} %", f"{project.speedup(share, gain):.3f} x"] for share in shares]
    print(f"\nwith communication {gain:g} times as fast, and all else as it is")
    print(table(["share of communication", "speedup"], rows))
    print(project.CAVEAT)


def main():
    parser = argparse.ArgumentParser(prog="weft profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=libraries.default_root(), type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--gain", type=float, help="how many times as fast communication would be")
    parser.add_argument("--json", help="append each job's report to this file")
    parser.add_argument("--project", help="shares in percent, separated by commas, instead of a command")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if args.gain is not None and args.gain <= 0:
        parser.error("--gain is a factor above 0")
    if bool(command) == bool(args.project) or args.project and not args.gain:
        parser.error("give either a command to run, or --project with --gain")
    if args.project:
        try:
            shares = [float(share) / 100 for share in args.project.split(",")]
            print_projection(shares, args.gain)
        except ValueError as why:
            parser.error(f"--project: {why}")
        return 0
    status, jobs = run(command, preloaded(args.root.resolve()))
    for job in jobs:
        print_job(job, args.gain)
    if args.json:
        with open(args.json, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(job) + "\n" for job in jobs)
    if not jobs:
        print("weft profile: no report: no job of this command came to MPI_Finalize with a library that has the standard ABI",
              file=sys.stderr)
    return status or (0 if jobs else 1)


if __name__ == "__main__":
    sys.exit(main())
