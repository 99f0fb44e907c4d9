#!/usr/bin/env python3
"""Programs built against another MPI's standard-ABI header and library run on Weft by LD_LIBRARY_PATH alone.

usage: foreign.py --build-dir BUILD
A C program, and a C++ library (whose names hold MPI's handle types, mangled) with a program that uses it, are compiled
against MPICH's mpi_abi.h and linked with MPICH's libmpi_abi, then run by Weft's mpiexec with Weft's library in the path.
"""
import argparse
import pathlib
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch  # noqa: E402

REQUIREMENT = "mpich==5.0.2"
HERE = pathlib.Path(__file__).resolve().parent / "foreign"


def other_mpi(build_dir):
    """The include and lib folders of the other MPI, unpacked from its wheel."""
    area = build_dir / "apps"
    home = area / REQUIREMENT.replace("==", "-")
    python = fetch.environment(area / "venv")
    if not home.exists():
        wheel = fetch.fetch(python, REQUIREMENT, area / "archives", "--only-binary", ":all:")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(home)
    headers = sorted(home.rglob("mpi_abi.h"))
    libraries = sorted(home.rglob("libmpi_abi.so.1"))
    if not headers or not libraries:
        print(f"{home} holds no mpi_abi.h or no libmpi_abi.so.1")
        sys.exit(1)
    return headers[0].parent, libraries[0].parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    build_dir = parser.parse_args().build_dir.resolve()
    include, lib = other_mpi(build_dir)
    out = build_dir / "apps" / "foreign"
    out.mkdir(exist_ok=True)
    link = out / "lib"
    link.mkdir(exist_ok=True)
    development = link / "libmpi_abi.so"
    development.unlink(missing_ok=True)
    development.symlink_to(lib / "libmpi_abi.so.1")
    common = ["-O1", "-Wall", "-DMPI_ABI", f"-I{include}"]
    # The other library needs things of its own that are not looked for here: only its names matter for linking.
    tail = [f"-L{link}", "-lmpi_abi", "-Wl,--allow-shlib-undefined"]
    env = fetch.clean_environment()
    fetch.run(["cc", "-std=c11", *common, HERE / "program.c", "-o", out / "program", *tail], env=env)
    fetch.run(["c++", "-std=c++17", *common, "-shared", "-fPIC", HERE / "library.cpp", "-o", out / "libexchange.so", *tail], env=env)
    fetch.run(["c++", "-std=c++17", *common, HERE / "use.cpp", "-o", out / "use", f"-L{out}", "-lexchange", *tail], env=env)

    env["LD_LIBRARY_PATH"] = f"{build_dir / 'lib'}:{out}"
    status = 0
    for program in ("program", "use"):
        for ranks in ("1", "2", "3"):
            command = [str(build_dir / "bin/mpiexec"), "-n", ranks, str(out / program)]
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, timeout=600)
            print(f"$ {' '.join(command)}\n{done.stdout}", flush=True)
            if done.returncode != 0 or "on Weft" not in done.stdout:
                print(f"ended with {done.returncode}, or did not run on Weft")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
