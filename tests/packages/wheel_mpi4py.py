#!/usr/bin/env python3
"""mpi4py built and run in a virtual environment that has Weft's wheel and nothing else: wheel_mpi4py.py --build-dir BUILD

The environment stays in the build tree, so that mpi4py is compiled again only when Weft's header or wrapper changed.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/apps"))
import fetch  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    build = parser.parse_args().build_dir.resolve()
    home = build / "apps/wheel"
    wheel = subprocess.run([sys.executable, "-B", SOURCE / "packaging/wheel.py", "--build-dir", build, "--out", home / "dist"],
                           check=True, capture_output=True, text=True).stdout.strip()
    python = fetch.environment(home / "venv")
    fetch.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-index", wheel],
              env=fetch.clean_environment())
    # Where the application's script looks for the archive it fetches.
    for archive in (build / "apps/archives").glob("*.tar.gz"):
        (home / "venv/apps/archives").mkdir(parents=True, exist_ok=True)
        shutil.copy(archive, home / "venv/apps/archives")
    # An environment with the wheel has the shape of a build: bin/, include/, lib/.
    script = SOURCE / "tests/apps/mpi4py.py"
    return subprocess.run([sys.executable, "-B", script, "smoke", "--build-dir", home / "venv"]).returncode


if __name__ == "__main__":
    sys.exit(main())
