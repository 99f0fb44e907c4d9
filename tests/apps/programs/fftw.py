"""FFTW 3.3.10 and its own test program for MPI, mpi-bench."""
import os
import re

import fetch

from .base import Check, Failed, Program, Timing, bounded, logged

# Every kind of transform that mpi-bench knows: complex and real, both ways, in place and out of it, one to three
# dimensions, vectors, sizes that the ranks do not divide, transposed input and output.
PROBLEMS = (
    "icf4096 ocb5040 ocf1009 icb30030 ocf64x64 icb60x54 ocf37x101 irf48x50 orb48x50 orf13x77 irb20x21x22 ocf16x16x16 "
    "icf15x17x19 ocb40x3x31 ]ocf36x40 [icb36x40 ]orf20x18x16 [orb20x18x16 ocf32x30v3 icb24x25v5 ok12e01x18o10 ik16hx20f "
    "ok9e00x8o00x7e11 ocf4x6x8x10").split()
# Ranks pass through alltoall, pairwise exchanges and plain sends here.
SPEEDS = {"complex 2^16": "ocf65536", "complex 256x256": "ocf256x256", "complex 1024x1024": "ocf1024x1024",
          "complex 64x64x64": "ocf64x64x64", "real 64x64x64": "orf64x64x64", "complex 128x128x128": "icf128x128x128"}


def program(area, debian, weft):
    home = area / "fftw"
    source, out = home / "source", home / "build"
    bench = out / "mpi/mpi-bench"

    def build(jobs):
        out.mkdir(exist_ok=True)
        env = fetch.clean_environment(MPICC=str(weft.mpiexec.with_name("mpicc")), CFLAGS="-O3 -fomit-frame-pointer")
        if not (out / "Makefile").exists():
            options = "mpi sse2".split(), "fortran doc shared dependency-tracking".split()
            words = [f"--enable-{o}" for o in options[0]] + [f"--disable-{o}" for o in options[1]]
            logged([source / "configure", *words], home / "build.log", env, out)
        logged(["make", f"-j{jobs}"], home / "build.log", env, out)

    def own_check(library, ranks):
        """FFTW's own check: random problems, each verified by mpi-bench; other ones in every run."""
        command = ["perl", "-w", source / "tests/check.pl", "--verbose", "--random", "--maxsize=10000", "-c=10", "--mpi",
                   " ".join(library.command(ranks, bench))]
        out_text = bounded(command, library.environment(), home, 900, library.label)
        verified = len(re.findall(r"^\S+ [\d.e+-]+ [\d.e+-]+ [\d.e+-]+$", out_text, re.M))
        if "FAILED" in out_text or "killed" in out_text or verified < 8:
            raise Failed(f"{library.label}: {verified} problems verified:\n{out_text[-2000:]}")
        return {"FFTW's own check": "passed"}

    def accuracy(library, ranks):
        words = [w for p in PROBLEMS for w in ("--verify", p)]
        # One round: where ranks share CPUs, other libraries take minutes for ten.
        text = library.run(ranks, bench, "--verbose=1", "--verify-rounds=1", "-o", "estimate", *words, cwd=home)
        found = dict(re.findall(r"^(\S+) ([\d.e+-]+ [\d.e+-]+ [\d.e+-]+)$", text, re.M))
        if len(found) != len(PROBLEMS):
            raise Failed(f"{library.label}: {len(found)} of {len(PROBLEMS)} problems verified:\n{text[-2000:]}")
        return found

    def speed(library, ranks):
        text = library.run(ranks, bench, "-o", "estimate", "-t", "0.03", "--report-time", *SPEEDS.values(), cwd=home)
        # Least, mean, largest, median of eight measurements; the mean holds what a busy machine does to it.
        means = re.findall(r"^\(\S+ (\S+) \S+ \S+\)$", text, re.M)
        if len(means) != len(SPEEDS):
            raise Failed(f"{library.label}: {len(means)} of {len(SPEEDS)} problems measured:\n{text[-2000:]}")
        return {f"fftw {name}": (float(mean) * 1e6, "us") for name, mean in zip(SPEEDS, means)}

    checks = [Check(f"fftw check.pl, {n} ranks", n, own_check, alone=True) for n in (1, 2, 3, 4)]
    checks += [Check(f"fftw accuracy, {n} ranks", n, accuracy) for n in (1, 2, 3, 4)]
    return Program("fftw", bench, lambda: debian.source("fftw3", source), build, checks, [Timing("fftw", speed)])
