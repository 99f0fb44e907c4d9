#!/usr/bin/env python3
"""Packs a build as a Debian package that stands beside MPICH and Open MPI.

deb.py --build-dir build --out dist        prints the path of the package

Everything lies in /usr/lib/weft; /usr/bin gets mpiexec.weft, mpicc.weft and so on. The package joins the groups of
alternatives that choose mpirun and mpicc, below the others (priority 30), and not the one that chooses libmpi.so, which
has another ABI.
"""
import os
import pathlib
import subprocess
import tempfile

import stage

PREFIX = "usr/lib/weft"
LAUNCHERS = ("mpiexec", "mpirun")
COMPILERS = ("mpicc", "mpicxx", "mpic++", "mpiCC")
CONTROL = """Package: weft-mpi
Version: {version}
Architecture: {architecture}
Maintainer: The Weft authors <weft@localhost>
Section: libs
Priority: optional
Depends: libc6 (>= {glibc}), libstdc++6
Recommends: gcc, libc6-dev
Installed-Size: {kilobytes}
Description: MPI for today's nodes, with the MPI 5.0 standard ABI
 Weft is an MPI library that exports the MPI 5.0 standard ABI, so a program built
 once runs on it and on every other library with that ABI. It has its own
 mpiexec for one machine.
"""
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    update-alternatives --install /usr/bin/mpirun mpirun /usr/bin/mpirun.weft 30 \\
        --slave /usr/bin/mpiexec mpiexec /usr/bin/mpiexec.weft \\
        --slave /usr/share/man/man1/mpirun.1.gz mpirun.1.gz /usr/share/man/man1/mpirun.weft.1.gz \\
        --slave /usr/share/man/man1/mpiexec.1.gz mpiexec.1.gz /usr/share/man/man1/mpiexec.weft.1.gz
    update-alternatives --install /usr/bin/mpicc mpi /usr/bin/mpicc.weft 30 \\
        --slave /usr/bin/mpicxx mpicxx /usr/bin/mpicxx.weft \\
        --slave /usr/bin/mpic++ mpic++ /usr/bin/mpic++.weft \\
        --slave /usr/bin/mpiCC mpiCC /usr/bin/mpiCC.weft
fi
"""
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] || [ "$1" = deconfigure ]; then
    update-alternatives --remove mpirun /usr/bin/mpirun.weft
    update-alternatives --remove mpi /usr/bin/mpicc.weft
fi
"""


def link(root, name, target):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def lay_out(root, build):
    prefix = root / PREFIX
    stage.install(build, prefix)
    for name in LAUNCHERS + COMPILERS:
        link(root, f"usr/bin/{name}.weft", f"../lib/weft/bin/{name}")
    link(root, "usr/bin/weft", "../lib/weft/bin/weft")
    manual = root / "usr/share/man/man1"
    manual.mkdir(parents=True)
    for name in LAUNCHERS:
        # -n: no time of packing inside, so that the same input makes the same package.
        packed = subprocess.run(["gzip", "-9n"], input=(prefix / f"share/man/man1/{name}.1").read_bytes(), capture_output=True, check=True)
        (manual / f"{name}.weft.1.gz").write_bytes(packed.stdout)
    doc = root / "usr/share/doc/weft-mpi"
    doc.mkdir(parents=True)
    (doc / "copyright").write_bytes(b"\n".join(path.read_bytes() for path in stage.LICENSES))


def control(root, version):
    glibc = stage.needed_glibc(root)
    size = sum(p.stat().st_size for p in root.rglob("*") if p.is_file() and not p.is_symlink())
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    folder = root / "DEBIAN"
    folder.mkdir()
    (folder / "control").write_text(CONTROL.format(version=version, architecture=architecture, glibc=f"{glibc[0]}.{glibc[1]}",
                                                   kilobytes=size // 1024))
    for name, text in (("postinst", POSTINST), ("prerm", PRERM)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return architecture


def main():
    args = stage.arguments(__doc__)
    version = stage.version()
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        root.mkdir(mode=0o755)
        lay_out(root, args.build_dir)
        architecture = control(root, version)
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"weft-mpi_{version}_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(root), str(path)], check=True,
                       stdout=subprocess.DEVNULL)
    print(path)


if __name__ == "__main__":
    main()
