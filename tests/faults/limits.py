#!/usr/bin/env python3
"""Runs a command where /dev/shm holds 1 MB: limits.py COMMAND ...

Needs the right to make a mount namespace (root, or user namespaces); without it the test is skipped, and says so.
"""
import subprocess
import sys

SKIPPED = 77
SMALL = "mount -t tmpfs -o size=1m tmpfs /dev/shm || exit 77; exec \"$@\""


def main():
    for unshare in (["unshare", "--mount"], ["unshare", "--mount", "--user", "--map-root-user"]):
        tried = subprocess.run([*unshare, "sh", "-c", SMALL, "sh", "true"], capture_output=True, text=True)
        if tried.returncode == 0:
            return subprocess.run([*unshare, "sh", "-c", SMALL, "sh", *sys.argv[1:]]).returncode
    print(f"SKIPPED: no namespace with a small /dev/shm can be made here: {tried.stderr.strip()}")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
