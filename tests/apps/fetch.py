"""Virtual environments and source archives for the application tests, kept in the build tree and fetched once.

A test that needs the network and has none is skipped, loudly: exit status 77 with a line that says what could not be had.
"""
import os
import pathlib
import subprocess
import sys
import venv

SKIPPED = 77


def skip(reason):
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


def run(command, **more):
    """Runs a command; its output is shown when it fails."""
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        print(f"$ {' '.join(str(c) for c in command)}\n{done.stdout}\nended with {done.returncode}", flush=True)
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout)
    return done.stdout


def clean_environment(**more):
    """The environment without what would lead pip or a compiler to another MPI."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MPI", "OMPI_", "I_MPI_", "PYTHON")) and k != "LD_LIBRARY_PATH"}
    kept.update(more)
    return kept


def environment(folder):
    """A virtual environment in `folder`; returns its python."""
    folder = pathlib.Path(folder)
    python = folder / "bin" / "python"
    if not python.exists():
        venv.EnvBuilder(with_pip=True, symlinks=True).create(folder)
    return python


def fetch(python, requirement, where, *options):
    """Downloads `requirement` into `where` by pip and returns the file; skips the test where that is impossible."""
    where = pathlib.Path(where)
    where.mkdir(parents=True, exist_ok=True)
    name = requirement.split("==")[0]
    found = sorted(p for p in where.iterdir() if p.name.startswith(name + "-"))
    if not found:
        done = subprocess.run([str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", *options, "--dest", str(where),
                               requirement], text=True, capture_output=True, env=clean_environment())
        found = sorted(p for p in where.iterdir() if p.name.startswith(name + "-"))
        if done.returncode != 0 or not found:
            skip(f"{requirement} could not be fetched by pip: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return found[-1]
