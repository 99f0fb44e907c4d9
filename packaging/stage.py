"""What the packages are made from: the installed tree of a build, in a folder of its own, without debug information."""
import argparse
import pathlib
import platform
import re
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[1]
LICENSES = (SOURCE / "LICENSE", SOURCE / "packaging/LICENSE.hwloc", SOURCE / "packaging/LICENSE.mimalloc")  # ours, and what the linked ones ask for


def arguments(description):
    """What every packer is told: where the build is, and where the package goes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default=SOURCE / "build", type=pathlib.Path)
    parser.add_argument("--out", default=SOURCE / "dist", type=pathlib.Path)
    return parser.parse_args()


def version():
    return re.search(r"project\(weft VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def elf_files(root):
    return [p for p in sorted(root.rglob("*")) if p.is_file() and not p.is_symlink() and is_elf(p)]


def install(build, prefix):
    """`cmake --install`, leaving alone the list of files by which `make uninstall` undoes the user's last install."""
    manifest = pathlib.Path(build) / "install_manifest.txt"
    kept = manifest.read_bytes() if manifest.exists() else None
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    if kept is None:
        manifest.unlink(missing_ok=True)
    else:
        manifest.write_bytes(kept)
    if shutil.which("strip"):
        for path in elf_files(prefix):
            # Symbols stay: debuggers look for mpiexec's process table among them.
            subprocess.run(["strip", "--strip-debug", str(path)], check=True)


def needed_glibc(root):
    """The newest glibc that any file asks for, as (2, 34)."""
    newest = (2, 0)
    for path in elf_files(root):
        text = subprocess.run(["readelf", "--version-info", "--wide", str(path)], check=True, capture_output=True, text=True).stdout
        for found in re.findall(r"GLIBC_(\d+)\.(\d+)", text):
            newest = max(newest, tuple(map(int, found)))
    return newest


def machine():
    return platform.machine()
