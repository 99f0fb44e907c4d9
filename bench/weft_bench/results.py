"""Result files: everything that was measured, where, of which libraries, by which command; and the pictures of it."""
import json
import pathlib
import sys

from . import picture


def keep(session, about, caption, kind, content, out):
    """OUT/kind.json, which is whole at any time: what a long run has so far outlives its end. None without a folder."""
    if not out:
        return None
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{kind}.json"
    fresh = folder / f".{kind}.json"
    fresh.write_text(json.dumps({
        "kind": kind, "caption": caption, "machine": about, "command": sys.argv[1:],
        "labels": session.labels, "versions": {lib.name: lib.version for lib in session.found},
        "broken": session.broken, **content}, indent=1), encoding="utf-8")
    fresh.replace(file)
    return file


def write(session, about, caption, kind, content, out, pictures):
    """The same, and the pictures beside it."""
    file = keep(session, about, caption, kind, content, out)
    if file:
        print("\n" + (picture.save(file, file.parent) if pictures else f"Numbers: {file}"))


def status(session):
    """The exit status: what broke is said, and Weft's own failures count."""
    for what, why in session.broken.items():
        print(f"broken: {what}: {why}")
    return 1 if any(name.startswith("weft:") for name in session.broken) else 0
