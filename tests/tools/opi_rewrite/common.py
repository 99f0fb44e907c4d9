"""Runs `weft opi-rewrite`, and compares what it says with the remarks in its input.

A call whose buffer must stay as it is has the remark `/* stays: PATTERN */` in its line; all other calls must be rewritten. With --fuse
an exchange that must not be fused has the remark `/* not fused: PATTERN */`.
"""
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["WEFT_BUILD"])
SECONDS = 120 * int(os.environ.get("WEFT_TEST_SCALE", "1"))


def rewrite(source, output, *options):
    """(status, [(line, buffer, text)]) of one run."""
    r = subprocess.run([BUILD / "bin/weft", "opi-rewrite", source, "-o", output, *options], capture_output=True, text=True, timeout=SECONDS)
    lines = [re.fullmatch(r".*?:(\d+): (.*?): (.*)", line) for line in r.stderr.splitlines()]
    if None in lines:
        raise AssertionError(r.stderr)
    return r.returncode, [(int(m[1]), m[2], m[3]) for m in lines]


def remarks(source, kind="stays"):
    """{line: pattern}"""
    found = {}
    for number, line in enumerate(source.read_text().splitlines(), 1):
        remark = re.search(rf"/\* {kind}: (.*?) ?\*/", line)
        if remark:
            found[number] = remark[1]
    return found


def compare(test, source, report):
    """What the report says of a line is what the remark of that line expects; there is one for each remark, and no other."""
    fusing = any("fused" in text for _, _, text in report)
    for kind in ["stays", "not fused"] if fusing else ["stays"]:
        expected = remarks(source, kind)
        said = {line: text for line, _, text in report if kind in text}
        test.assertEqual(sorted(said), sorted(expected), f"{source.name}: lines of which '{kind}' is said")
        for line, text in said.items():
            test.assertRegex(text, f"{kind}: {expected[line]}", f"{source.name}:{line}")
