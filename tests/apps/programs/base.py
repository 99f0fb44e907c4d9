"""What the programs share: the libraries they run on, one bounded run, the shape of a check and of a measurement."""
import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import dataclass, field

PROJECT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT / "bench"))
from weft_bench import libraries  # noqa: E402


class Failed(Exception):
    """A run that ended badly or said something unexpected; the text says what."""


@dataclass
class Library:
    name: str
    label: str
    mpiexec: pathlib.Path
    lib: pathlib.Path
    options: tuple = ()              # of mpiexec

    def environment(self):
        """Default settings; the library is chosen by LD_LIBRARY_PATH alone, the programs are the same files."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(libraries.FOREIGN)}
        env.update(LD_LIBRARY_PATH=str(self.lib), LC_ALL="C", OMP_NUM_THREADS="1")
        return env

    def command(self, ranks, program, *arguments):
        return [str(self.mpiexec), *self.options, "-n", str(ranks), str(program), *map(str, arguments)]

    def run(self, ranks, program, *arguments, cwd, seconds=600):
        """The standard output of one job; Failed where it fails or takes too long."""
        return bounded(self.command(ranks, program, *arguments), self.environment(), cwd, seconds, self.label)

    def holds(self, program):
        """Fails unless this library is the one that the dynamic linker gives to the program."""
        out = subprocess.run(["ldd", str(program)], env=self.environment(), text=True, capture_output=True).stdout
        if str(self.lib) not in "".join(line for line in out.splitlines() if "libmpi_abi" in line):
            raise Failed(f"{program} does not run on {self.label}'s library in {self.lib}")


def bounded(command, env, cwd, seconds, label):
    command = [str(c) for c in command]
    process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException as why:
        # The launcher takes its ranks along when it is asked to end; the session is this run's own.
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.communicate(timeout=5)
                break
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        if isinstance(why, subprocess.TimeoutExpired):
            raise Failed(f"{label}: did not end within {seconds} s: {' '.join(command)}") from None
        raise
    if process.returncode:
        tail = "\n    ".join((out + err).strip().splitlines()[-12:])
        raise Failed(f"{label}: exit status {process.returncode}: {' '.join(command)}\n    {tail}")
    return out


def logged(command, log, env, cwd=None):
    """Runs a build step; what it prints goes to the file `log`, whose end is shown when it fails."""
    with open(log, "a") as out:
        print(f"$ {' '.join(map(str, command))}", file=out, flush=True)
        code = subprocess.run([str(c) for c in command], env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT).returncode
    if code:
        tail = "\n    ".join(line[:200] for line in pathlib.Path(log).read_text(errors="replace").splitlines()[-30:])
        raise Failed(f"{command[0]} ended with {code}; the whole of it is in {log}\n    {tail}")


def weft(build_dir):
    return Library("weft", "Weft", build_dir / "bin/mpiexec", build_dir / "lib")


def weft_in_heap(build_dir):
    """All memory of malloc from the node's shared heap."""
    return Library("weft-heap", "Weft, shared heap", build_dir / "bin/mpiexec", build_dir / "lib", ("--shared-heap",))


LABELS = {"mpich": "MPICH", "impi": "Intel MPI"}


def peers_home(build_dir):
    return pathlib.Path(os.environ.get("WEFT_PEERS", build_dir / "apps/peers")).resolve()


def peer(build_dir, name):
    home = peers_home(build_dir) / name
    library = Library(name, LABELS[name], home / "bin/mpiexec", home / "lib")
    if not library.mpiexec.exists() or not (library.lib / "libmpi_abi.so.1").exists():
        raise Failed(f"{library.label} is not in {home}: give `programs.py fetch`")
    return library


@dataclass
class Check:
    """One run on two libraries: `results` turns a library's run into what must be the same on both."""
    name: str
    ranks: int
    results: object                  # (library, ranks) -> {what: value}
    tolerance: float = 0.0           # relative, for numbers; sums over more than two ranks may be made in another order
    alone: bool = False              # the program itself knows what is right: no other library is needed


@dataclass
class Timing:
    """One launch gives some rows: name -> (value, unit); for rates more is better."""
    name: str
    measure: object                  # (library, ranks) -> {row: (value, unit)}


RATES = ("Gflop/s", "GB/s", "GUP/s")


@dataclass
class Program:
    name: str
    binary: pathlib.Path
    fetch: object
    build: object
    checks: list = field(default_factory=list)
    timings: list = field(default_factory=list)
