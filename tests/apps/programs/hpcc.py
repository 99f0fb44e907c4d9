"""HPCC 1.5.0: linear algebra, transposition, random access, Fourier transform, latency and bandwidth in one program."""
import re
import shutil

import fetch

from .base import Check, Failed, Program, Timing, logged

# The configuration that HPCC asks its user to write, hpl/Make.ARCH.
MAKE = """SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir -p
RM = /bin/rm -f
TOUCH = touch
ARCH = $(arch)
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
LAlib = {blas}
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) $(LAlib) -lm -lpthread
HPL_OPTS = {options}
HPL_DEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle $(HPL_OPTS) $(HPL_INCLUDES)
CC = {mpicc}
CCNOOPT = $(HPL_DEFS)
CCFLAGS = $(HPL_DEFS) -O3 -fomit-frame-pointer
LINKER = {mpicc}
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
"""
# HPL_packL.c calls MPI_Address and MPI_Type_struct, which MPI-3.0 removed.
OPTIONS = "-DWEFT_MPI1_NAMES"
# Lines of hpccinf.txt that are not as in the example that comes with HPCC.
GRIDS = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2)}
# What a run computes, in the summary; everything else there is a time or a rate, or follows from the size of the machine.
RESULTS = re.compile(
    r"^(Success|CommWorldProcs|HPL_(N|NB|nprow|npcol|RnormI|Anorm1|AnormI|Xnorm1|XnormI|BnormI)|PTRANS_(n|nb|residual)|"
    r"\w*RandomAccess\w*_(N|ErrorsFraction|ExeUpdates|Errors)|\w*FFT_(N|maxErr))$")
ROWS = {"HPL": ("HPL_Tflops", 1e3, "Gflop/s"), "PTRANS": ("PTRANS_GBs", 1, "GB/s"),
        "MPIRandomAccess": ("MPIRandomAccess_GUPs", 1, "GUP/s"),
        "MPIRandomAccess LCG": ("MPIRandomAccess_LCG_GUPs", 1, "GUP/s"), "MPIFFT": ("MPIFFT_Gflops", 1, "Gflop/s"),
        "ping-pong latency": ("AvgPingPongLatency_usec", 1, "us"),
        "ping-pong bandwidth": ("AvgPingPongBandwidth_GBytes", 1, "GB/s"),
        "natural ring latency": ("NaturallyOrderedRingLatency_usec", 1, "us"),
        "natural ring bandwidth": ("NaturallyOrderedRingBandwidth_GBytes", 1, "GB/s"),
        "random ring latency": ("RandomlyOrderedRingLatency_usec", 1, "us"),
        "random ring bandwidth": ("RandomlyOrderedRingBandwidth_GBytes", 1, "GB/s")}


def program(area, debian, weft):
    home = area / "hpcc"
    source, out, blas = home / "source", home / "build", home / "blas"

    def bring():
        debian.source("hpcc", source)
        debian.binary("libopenblas-serial-dev", blas)

    def build(jobs):
        if not out.exists():
            shutil.copytree(source, out)
        # The archive, not the shared library, which would need Fortran's; Debian gives no other that does not.
        archive = next(blas.rglob("libopenblas.a"))
        made = MAKE.format(blas=archive, mpicc=weft.mpiexec.with_name("mpicc"), options=OPTIONS)
        config = out / "hpl/Make.weft"
        if not config.exists() or config.read_text() != made:
            config.write_text(made)
        (out / "hpl/lib/weft").mkdir(parents=True, exist_ok=True)
        logged(["make", f"-j{jobs}", "arch=weft"], home / "build.log", fetch.clean_environment(), out)

    def run(library, ranks, order, seconds):
        """The summary of one run with matrices of this order."""
        where = home / f"run-{library.name}-{ranks}"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        lines = (source / "_hpccinf.txt").read_text().splitlines()
        p, q = GRIDS[ranks]
        for number, value in ((6, order), (11, p), (12, q)):
            lines[number - 1] = f"{value} {lines[number - 1].split(maxsplit=1)[1]}"
        (where / "hpccinf.txt").write_text("\n".join(lines) + "\n")
        library.run(ranks, out / "hpcc", cwd=where, seconds=seconds)
        text = (where / "hpccoutf.txt").read_text()
        summary = dict(re.findall(r"^(\w+)=(\S+)$", text.split("Begin of Summary section.")[-1], re.M))
        if summary.get("Success") != "1" or "FAILED" in text:
            raise Failed(f"{library.label}: HPCC says it failed: {where}/hpccoutf.txt")
        return text, summary

    def results(library, ranks):
        text, summary = run(library, ranks, 500, 600)
        found = {k: v for k, v in summary.items() if RESULTS.match(k)}
        found["residuals"] = re.findall(r"^\|\|Ax-b\|\|.*$", text, re.M)
        found["PTRANS"] = re.findall(r"^WALL .* (PASSED|FAILED) +\S+ +(\S+)$", text, re.M)
        return found

    def rows(library, ranks):
        _, summary = run(library, ranks, 1000, 600)
        return {f"hpcc {name}": (float(summary[key]) * scale, unit) for name, (key, scale, unit) in ROWS.items()}

    checks = [Check(f"hpcc, {n} ranks", n, results) for n in (2, 4)]
    return Program("hpcc", out / "hpcc", bring, build, checks, [Timing("hpcc", rows)])
