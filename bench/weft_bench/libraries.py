"""Which MPI libraries are here, and how each is started.

Libraries with the standard ABI run the very same binary, chosen by LD_LIBRARY_PATH alone; Open MPI 5 has no such
library, so the same sources are built natively with its own compiler. Every library runs with its default settings.
"""
import os
import pathlib
import subprocess
from dataclasses import dataclass, field

SOURCES = pathlib.Path(__file__).resolve().parent.parent
PROJECT = SOURCES.parent
PART = SOURCES / "part"
APPS = PROJECT / "apps"  # beside bench/, in the source tree as in an installation
FLAGS = ["-O3", "-std=gnu11", "-march=x86-64-v2", "-D_GNU_SOURCE", "-pthread"]  # as in bench/CMakeLists.txt
# Settings of an enclosing job or of a tuned shell would not be anybody's defaults.
FOREIGN = ("I_MPI_", "MPIR_", "OMPI_", "PRTE_", "PMIX_", "PMI_", "UCX_", "FI_", "HYDRA_", "MPICH_", "SLURM_")


class Unusable(Exception):
    """A library that is installed but cannot be used here; the text says why."""


@dataclass
class Library:
    name: str
    label: str
    launch: list            # the command before "-n N program"
    programs: pathlib.Path  # where weft-bench and weft-hello for this library lie
    expects: str            # what its version string must contain: a guard against measuring the wrong one
    env: dict = field(default_factory=dict)
    version: str = ""       # what it said of itself in the last run

    def command(self, ranks, program, args):
        return [*self.launch, "-n", str(ranks), str(self.programs / program), *map(str, args)]

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        env.update(self.env)
        return env


def default_root():
    """The tree of the `weft` command that asks, else the installation this file is part of, else the build tree."""
    if "WEFT_BENCH_ROOT" in os.environ:
        return pathlib.Path(os.environ["WEFT_BENCH_ROOT"])
    prefix = SOURCES.parents[2] if len(SOURCES.parents) > 2 else SOURCES
    return prefix if (prefix / "lib" / "libmpi_abi.so.1").exists() else PROJECT / "build"


def program_dir(root):
    """Where the benchmarks of a build tree, or of an installation, lie."""
    for place in (root / "bench", root / "libexec" / "weft" / "bench"):
        if (place / "weft-bench-plain").exists():
            return place
    raise Unusable(f"no benchmark programs under {root}: build first (make)")


def weft(root):
    mpiexec = root / "bin" / "mpiexec"
    if not mpiexec.exists() or not (root / "lib" / "libmpi_abi.so.1").exists():
        raise Unusable(f"{root} holds no bin/mpiexec and lib/libmpi_abi.so.1: build first (make)")
    return Library("weft", "Weft", [str(mpiexec)], program_dir(root), "Weft", {"LD_LIBRARY_PATH": str(root / "lib")})


def with_abi(root, home, name, label, expects):
    if not (home / "bin" / "mpiexec").exists():
        raise Unusable("not installed")
    if not (home / "lib" / "libmpi_abi.so.1").exists():
        raise Unusable(f"{home / 'lib'} holds no libmpi_abi.so.1")
    return Library(name, label, [str(home / "bin" / "mpiexec")], program_dir(root), expects,
                   {"LD_LIBRARY_PATH": str(home / "lib")})


def parts_of_programs():
    """{program: its sources}; what must be as in bench/CMakeLists.txt and apps/CMakeLists.txt."""
    mine = sorted((SOURCES / "mpi").glob("*.c"))
    parts = {"weft-bench": [p for p in mine if p.name != "hello.c"], "weft-hello": [SOURCES / "mpi" / "hello.c"],
             "weft-bench-part": [SOURCES / "mpi" / "common.c", *(p for p in sorted(PART.glob("*.c")) if not p.stem.endswith("_test"))]}
    common = [SOURCES / "mpi" / "common.c", SOURCES / "mpi" / "limits.c", *sorted((APPS / "common").glob("*.c"))]
    for main in sorted(APPS.glob("*/main.c")):
        own = [p for p in sorted(main.parent.glob("*.c")) if not p.name.startswith("cachesim")]
        parts["weft-" + main.parent.name] = own + common
    return parts


def include_flags(root):
    """weft_signal.h last: the folder may hold another mpi.h."""
    headers = PROJECT / "include" if (PROJECT / "include" / "weft_signal.h").exists() else root / "include"
    return [f"-I{SOURCES / 'mpi'}", f"-I{APPS}", "-idirafter", str(headers)]


def build_natively(root, home):
    """The same sources with the library's own compiler; built again only when a source is newer."""
    out = program_dir(root) / "openmpi"
    if not os.access(out.parent, os.W_OK):
        out = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "weft" / "bench-openmpi"
    out.mkdir(parents=True, exist_ok=True)
    newest = max(p.stat().st_mtime for folder in (SOURCES / "mpi", PART, APPS) for p in folder.rglob("*.[ch]"))
    for program, files in parts_of_programs().items():
        target = out / program
        if target.exists() and target.stat().st_mtime >= newest:
            continue
        more = ["-fopenmp"] if program == "weft-bench-part" else []
        done = subprocess.run([str(home / "bin" / "mpicc"), *FLAGS, *more, *include_flags(root), *map(str, files), "-o", str(target), "-lm"],
                              capture_output=True, text=True)
        if done.returncode:
            raise Unusable("its mpicc cannot build the benchmark: " + done.stderr.strip().splitlines()[-1])
    return out


def openmpi(root, home, over_ucx):
    if not (home / "bin" / "mpiexec").exists():
        raise Unusable("not installed")
    launch = [str(home / "bin" / "mpiexec"), "--allow-run-as-root", "--oversubscribe"]
    if over_ucx:
        launch += ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
                   "--mca", "osc", "^ucx"]
    name, label = ("openmpi-ucx", "Open MPI/UCX") if over_ucx else ("openmpi", "Open MPI")
    return Library(name, label, launch, build_natively(root, home), "Open MPI")


def discover(root, only=None):
    """The usable libraries, Weft first, and the reasons why others are not."""
    root = pathlib.Path(root).resolve()
    peers = pathlib.Path(os.environ.get("WEFT_PEERS", PROJECT / "venvs")).resolve()
    makers = {
        "weft": lambda: weft(root),
        "mpich": lambda: with_abi(root, peers / "mpich", "mpich", "MPICH", "MPICH"),
        "impi": lambda: with_abi(root, peers / "impi", "impi", "Intel MPI", "Intel"),
        "openmpi": lambda: openmpi(root, peers / "openmpi", False),
        "openmpi-ucx": lambda: openmpi(root, peers / "openmpi", True),
    }
    unknown = set(only or ()) - set(makers)
    if unknown:
        raise SystemExit(f"weft bench: no library named {', '.join(sorted(unknown))}; there are {', '.join(makers)}")
    found, absent = [], {}
    for name, make in makers.items():
        if only and name not in only:
            continue
        try:
            found.append(make())
        except Unusable as why:
            absent[name] = str(why)
    return found, absent


def compared(root, only=None, program=None):
    """The usable libraries that have `program`, told apart from the others aloud; ends the command where there is none."""
    found, absent = discover(root, only)
    if program:
        absent.update({lib.name: f"{program} was not built" for lib in found if not (lib.programs / program).exists()})
        found = [lib for lib in found if lib.name not in absent]
    for name, why in absent.items():
        print(f"not in the comparison: {name}: {why}")
    if not found:
        raise SystemExit("weft bench: nothing to measure")
    return found
