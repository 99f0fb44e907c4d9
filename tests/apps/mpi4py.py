#!/usr/bin/env python3
"""mpi4py, built from its source archive with Weft's mpicc, at work on Weft.

usage: mpi4py.py smoke|conformance|build --build-dir BUILD [--shared-heap] [--ranks 1,2,3,4,5] [--only REGEX] [--seconds S]
  smoke         the library's version, helloworld, ringtest and pingpong on two ranks
  conformance   mpi4py's own suite, test/main.py, at each number of ranks
  --shared-heap   all memory of Python and of mpi4py from the node's shared heap
"""
import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch  # noqa: E402

VERSION = "4.1.2"
EXPECTED = pathlib.Path(__file__).resolve().parent / "mpi4py_expected.txt"


def build(build_dir):
    """The python of a virtual environment that has mpi4py built against this tree, and mpi4py's unpacked sources."""
    area = build_dir / "apps"
    home = area / f"mpi4py-{VERSION}"
    python = fetch.environment(home / "venv")
    archive = fetch_archive(python, area)
    sources = home / "src"
    if not sources.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(home)
        (home / f"mpi4py-{VERSION}").rename(sources)
    # Rebuilt when the header or the wrapper changed; the library itself is found when it runs.
    stamp = hashlib.sha256((build_dir / "include/mpi.h").read_bytes() + (build_dir / "bin/mpicc").read_bytes()).hexdigest()
    mark = home / "built"
    if not mark.exists() or mark.read_text() != stamp:
        env = fetch.clean_environment(MPICC=str(build_dir / "bin/mpicc"), CFLAGS="-O0 -g0")
        fetch.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps", "--no-cache-dir", archive], env=env)
        mark.write_text(stamp)
    return python, sources


def fetch_archive(python, area):
    """pip download of a source archive runs its build backend; the plain file is all that is needed."""
    where = area / "archives"
    where.mkdir(parents=True, exist_ok=True)
    target = where / f"mpi4py-{VERSION}.tar.gz"
    if target.exists():
        return target
    done = subprocess.run([str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", "mpi4py", "--dest", str(where),
                           f"mpi4py=={VERSION}"], text=True, capture_output=True, env=fetch.clean_environment(MPICC="cc"))
    if not target.exists():
        fetch.skip(f"mpi4py {VERSION} could not be fetched by pip: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return target


def smoke(build_dir, options):
    python, _ = build(build_dir)
    mpiexec = [build_dir / "bin/mpiexec", *options]
    env = fetch.clean_environment()

    def check(command, pattern):
        out = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, env=env)
        print(f"$ {' '.join(str(c) for c in command)}\n{out.stdout}", flush=True)
        if out.returncode != 0 or not re.search(pattern, out.stdout):
            print(f"ended with {out.returncode}; expected to see {pattern!r}")
            return 1
        return 0

    bad = check([python, "-m", "mpi4py", "--mpi-lib-version"], r"Weft Version: \d")
    for command, pattern in (("helloworld", r"(?s)I am process 0 of 2.*I am process 1 of 2|I am process 1 of 2.*I am process 0 of 2"),
                             ("ringtest", r"time for \d+ loops"), ("pingpong", r"(?m)^\s*\d+\s+\d+\.\d+")):
        # The largest sizes of pingpong are 1 GiB a message: too much for a small machine, and nothing new.
        more = ["--max-size", str(16 << 20)] if command == "pingpong" else []
        bad += check([*mpiexec, "-n", "2", python, "-m", "mpi4py.bench", command, *more], pattern)
    bad += check([*mpiexec, "-n", "5", python, "-m", "mpi4py.bench", "helloworld"], r"of 5")
    return 1 if bad else 0


def not_run():
    """Name patterns of the test cases that are left out: "pattern: reason"."""
    patterns = []
    for line in EXPECTED.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(":")
            if not reason.strip():
                raise SystemExit(f"{EXPECTED}: {name} without a reason")
            patterns.append(name.strip())
    return patterns


# Modules that need something missing as soon as they are loaded: their names, from patterns that end in ".*" alone.
def whole_modules(patterns):
    return [f"^{p[:-2]}\\.py$" for p in patterns if p.endswith(".*") and p.count(".") == 1]


def conformance(build_dir, ranks, only, seconds, options):
    """mpi4py's suite at each number of ranks; every test passes or is skipped by mpi4py itself, but for those in EXPECTED."""
    python, sources = build(build_dir)
    patterns = not_run()
    leave_out = [word for p in patterns for word in ("-x", p)] + [word for m in whole_modules(patterns) for word in ("-e", m)]
    env = fetch.clean_environment()
    status = 0
    for n in ranks:
        command = [build_dir / "bin/mpiexec", *options, "-n", n, python, sources / "test/main.py", "-v", *leave_out] + (["-i", only] if only else [])
        log = build_dir / "apps" / f"conformance{''.join(options)}-{n}.log"
        with open(log, "w") as out:
            try:
                code = subprocess.run([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT, timeout=seconds, env=env, cwd=sources).returncode
            except subprocess.TimeoutExpired:
                code = f"none within {seconds} s"
        text = log.read_text(errors="replace")
        failed = sorted(set(re.findall(r"^(?:FAIL|ERROR): \w+ \(([\w.]+)\)", text, re.M)))
        ran = re.findall(r"^Ran (\d+) tests", text, re.M)
        print(f"{n} ranks: exit status {code}, {ran[0] if ran else 'an unknown number of'} tests ran, {len(failed)} failed ({log})", flush=True)
        for name in failed[:40]:
            print(f"    {name}")
        if failed or code != 0 or not ran:
            status = 1
    return status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["smoke", "conformance", "build"])
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    parser.add_argument("--ranks", default="1,2,3,4,5")
    parser.add_argument("--only", help="modules whose names match this")
    parser.add_argument("--shared-heap", dest="options", action="store_const", const=["--shared-heap"], default=[], help="give this to mpiexec")
    parser.add_argument("--seconds", type=int, default=1800, help="time limit for each number of ranks")
    args = parser.parse_args()
    build_dir = args.build_dir.resolve()
    os.chdir(build_dir)
    if args.what == "build":
        build(build_dir)
        return 0
    if args.what == "smoke":
        return smoke(build_dir, args.options)
    return conformance(build_dir, args.ranks.split(","), args.only, args.seconds, args.options)


if __name__ == "__main__":
    sys.exit(main())
