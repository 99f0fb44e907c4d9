"""LAMMPS (6 January 2022): molecular dynamics, three of the inputs in its bench/ folder."""
import re
import shutil

import fetch

from .base import Check, Failed, Program, Timing, logged

PACKAGES = ("MOLECULE", "KSPACE", "MANYBODY", "RIGID")
OFF = ("WITH_JPEG", "WITH_PNG", "WITH_GZIP", "WITH_FFMPEG", "BUILD_OMP", "BUILD_DOC", "BUILD_TOOLS", "BUILD_SHARED_LIBS",
       "LAMMPS_EXCEPTIONS")
INPUTS = ("lj", "eam", "rhodo")


def program(area, debian, weft):
    home = area / "lammps"
    source, out = home / "source", home / "build"

    def build(jobs):
        env = fetch.clean_environment()
        if not (out / "build.ninja").exists():
            wrapper = weft.mpiexec.with_name("mpicxx")
            if shutil.which("ccache"):
                env.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
            settings = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O2 -DNDEBUG", "CMAKE_CXX_COMPILER": wrapper,
                        "MPI_CXX_COMPILER": wrapper, "BUILD_MPI": "on", "FFT": "KISS"}
            settings.update({name: "off" for name in OFF}, **{f"PKG_{name}": "on" for name in PACKAGES})
            logged(["cmake", "-S", source / "cmake", "-B", out, "-G", "Ninja", *(f"-D{k}={v}" for k, v in settings.items())],
                   home / "build.log", env)
        logged(["cmake", "--build", out, "-j", jobs], home / "build.log", env)

    def run(library, ranks, name):
        where = home / f"run-{library.name}-{ranks}"
        where.mkdir(exist_ok=True)
        options = ["-in", source / f"bench/in.{name}", "-log", where / f"log.{name}", "-screen", "none", "-nocite"]
        text = library.run(ranks, out / "lmp", *options, cwd=source / "bench", seconds=900)
        log = (where / f"log.{name}").read_text()
        if "Total wall time" not in log:
            raise Failed(f"{library.label}: LAMMPS did not come to its end: {where}/log.{name}\n{text}")
        return log

    def thermo(name):
        def results(library, ranks):
            """Every number that LAMMPS prints about the state, each step that it prints."""
            log = run(library, ranks, name)
            found = {}
            table = re.search(r"^Step .*?\n(.*?)^Loop time", log, re.M | re.S)
            if table:
                found["steps"] = [line.split() for line in table.group(1).splitlines()]
            for step, block in re.findall(r"^-+ Step +(\d+) -.*?\n((?:\w+ += .*\n)+)", log, re.M):
                found[f"step {step}"] = re.findall(r"(\w+) += +(\S+)", block)
            if not found:
                raise Failed(f"{library.label}: no table of steps in LAMMPS's log")
            counts = r"^(?:Total # of neighbors|Neighbor list builds|Dangerous builds) = .*$"
            found["counts"] = re.findall(counts, log, re.M)
            return found
        return results

    def loop(name):
        def rows(library, ranks):
            seconds = re.search(r"^Loop time of (\S+) on", run(library, ranks, name), re.M).group(1)
            return {f"lammps in.{name}": (float(seconds), "s")}
        return rows

    # Sums over two ranks do not depend on the order, so every digit is the same; with four, the last ones may differ. The
    # largest input is run on two only: where ranks share CPUs, other libraries take many minutes for it.
    checks = [Check(f"lammps in.{name}, 2 ranks", 2, thermo(name)) for name in INPUTS]
    checks += [Check(f"lammps in.{name}, 4 ranks", 4, thermo(name), 1e-5) for name in ("lj", "eam")]
    timings = [Timing(f"lammps.{name}", loop(name)) for name in INPUTS]
    return Program("lammps", out / "lmp", lambda: debian.source("lammps", source), build, checks, timings)
