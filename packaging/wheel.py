#!/usr/bin/env python3
"""Packs a build as a wheel: bin/, include/ and lib/ that land in the root of a virtual environment.

wheel.py --build-dir build --out dist      prints the path of the wheel

There is no Python code in it. Wheels hold no symbolic links, so the development link is a linker script.
"""
import base64
import hashlib
import os
import pathlib
import tempfile
import zipfile

import stage

METADATA = """Metadata-Version: 2.1
Name: weft-mpi
Version: {version}
Summary: MPI for today's nodes, with the MPI 5.0 standard ABI
License: BSD-3-Clause
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

"""
WHEEL = """Wheel-Version: 1.0
Generator: packaging/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


def contents(root):
    """(name, bytes, executable) of what goes into a virtual environment. The static archive, many times the size, does not."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            target = os.readlink(path)
            yield name, f"INPUT({target})\n".encode(), False
        elif path.is_file() and path.suffix != ".a":
            yield name, path.read_bytes(), os.access(path, os.X_OK)


class Writer:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same input makes the same wheel
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, info):
        name = f"{info}/RECORD"
        text = "\n".join([*self.record, f"{name},,"]) + "\n"
        self.add(name, text.encode())
        self.zip.close()


def main():
    args = stage.arguments(__doc__)
    version = stage.version()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "weft"
        stage.install(args.build_dir, root)
        glibc = stage.needed_glibc(root)
        tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{stage.machine()}"
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"weft_mpi-{version}-{tag}.whl"
        writer = Writer(path)
        for name, data, executable in contents(root):
            writer.add(f"weft_mpi-{version}.data/data/{name}", data, executable)
    info = f"weft_mpi-{version}.dist-info"
    writer.add(f"{info}/METADATA", (METADATA.format(version=version) + (stage.SOURCE / "README.md").read_text()).encode())
    writer.add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    for text in stage.LICENSES:
        writer.add(f"{info}/licenses/{text.name}", text.read_bytes())
    writer.close(info)
    print(path)


if __name__ == "__main__":
    main()
