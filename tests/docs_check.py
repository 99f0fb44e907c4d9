#!/usr/bin/env python3
"""Checks what the documents claim against the tree, and the size of the code against what a person can hold in the head.

usage: docs_check.py [ROOT]
  - every file and function that the documents on the path of a message (FOLLOWED) name in backquotes exists
  - every relative link of every document leads to a file
  - no tracked text holds a path of somebody's machine, or an unfinished mark
  - the documents say the field's words, not the code's older ones
  - code gates: the 99th percentile of function lengths, and the length of files
"""
import pathlib
import re
import subprocess
import sys

FUNCTION_LINES_P99 = 100
FILE_LINES = 900

breaches = []


def tracked(root):
    try:
        out = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
        names = [name for name in out.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        skip = {".git", "build", "build-asan", "build-tsan", "build-single", "build-clang"}
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and not skip & set(p.relative_to(root).parts)]
    return [root / name for name in names if (root / name).is_file()]


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return None


FOLLOWED = ("tour-of-a-send.md", "design-of-wires.md", "memory-order.md")


def check_names(root, sources):
    code = "\n".join(text for path, text in sources.items() if path.suffix in {".cpp", ".hpp", ".c", ".h", ".py", ".json"})
    named = [(page, number, name) for page in FOLLOWED
             for number, line in enumerate((root / "docs" / page).read_text().splitlines(), 1) for name in re.findall(r"`([^`]+)`", line)]
    for page, number, name in named:
        where = f"docs/{page}:{number}"
        path = re.fullmatch(r"[\w./-]+/[\w.-]+|[\w-]+\.(?:hpp|cpp|c|h|py|json|md)", name)
        if path and ("." in name.rsplit("/", 1)[-1] or name.endswith("/")):
            if not any((root / base / name).exists() for base in ("", "src", "gen", "docs")):
                breaches.append(f"{where}: {name} is not in the tree")
            continue
        function = re.fullmatch(r"(?:[\w]+::)*~?(\w+)\(.*\)", name) or re.fullmatch(r"(?:[\w]+::)+(\w+)", name)
        if function and not re.search(r"\b" + re.escape(function.group(1)) + r"\b", code):
            if not re.match(r"P?MPI_", function.group(1)):
                breaches.append(f"{where}: {name} is nowhere in the code")


def check_links(root, sources):
    for path, text in sources.items():
        if path.suffix != ".md":
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\]\(([^)#\s]+)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                if not (path.parent / target).exists():
                    breaches.append(f"{path.relative_to(root)}:{number}: the link to {target} leads nowhere")


def check_words(root, sources):
    machine = re.compile(r"(?<![\w.$}{)*<\]-])/(?:root|home|work|workspace|mnt|Users)/[\w.-]+")
    unfinished = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    for path, text in sources.items():
        if path.name == "docs_check.py":
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, what in ((machine, "a path of one machine"), (unfinished, "unfinished")):
                found = pattern.search(line)
                if found:
                    breaches.append(f"{path.relative_to(root)}:{number}: {what}: {found.group(0)}")


# What engineers from other libraries would have to learn first, and what they know instead. Code and the glossary may name it.
OLDER_WORDS = {
    r"chairs?": "sentinel", r"doors?": "mailbox, or bindings", r"contests?": "measured selection", r"crowds?": "concurrent transfers", r"halves": "split CMA",
    r"patience": "fallback after N us", r"unasked": "eager", r"lent|lends?|lending": "reply in place", r"bells?": "doorbell",
    r"floors?": "layer", r"riddles?": "say it plainly", r"whose turn": "lap number",
}


def check_field_words(root, sources):
    for path, text in sources.items():
        relative = path.relative_to(root)
        if relative.suffix != ".md" or len(relative.parts) > 2 or relative.parts[0] not in {"README.md", "AGENTS.md", "CONTRIBUTING.md", "docs"}:
            continue
        blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))  # noqa: E731
        plain = re.sub(r"## \d+\. Glossary\n.*?(?=\n## |\Z)", blank, text, flags=re.S)
        plain = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", blank, plain, flags=re.S)
        for number, line in enumerate(plain.splitlines(), 1):
            for word, field in OLDER_WORDS.items():
                if found := re.search(rf"\b(?:{word})\b", line, re.I):
                    breaches.append(f"{relative}:{number}: {found.group(0)}: say {field}")


def functions_of(text):
    """(first line, number of lines, name) of each function body, by braces; good enough to keep an eye on."""
    blanked = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                     lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    lines = blanked.splitlines()
    found, number = [], 0
    while number < len(lines):
        line = lines[number]
        head = re.match(r"^(?:    )?(?!else|if|for|while|switch|do|return|namespace|struct|class|enum|union|extern|typedef|using|case|#)[\w:&*<>,\[\] ~]*?"
                        r"(~?\w+)\s*\([^;]*\)[^;=]*\{\s*$", line)
        if head:
            depth, end = 0, number
            while end < len(lines):
                depth += lines[end].count("{") - lines[end].count("}")
                if depth <= 0:
                    break
                end += 1
            found.append((number + 1, end - number + 1, head.group(1)))
            number = end
        number += 1
    return found


def check_sizes(root, sources):
    lengths = []
    for path, text in sources.items():
        relative = path.relative_to(root)
        if path.suffix not in {".cpp", ".hpp", ".c", ".h"} or relative.parts[0] not in {"src", "cmd", "bench", "tests"}:
            continue
        lines = text.count("\n")
        if lines > FILE_LINES:
            breaches.append(f"{relative}:1: {lines} lines; at most {FILE_LINES}")
        if relative.parts[0] in {"src", "cmd"} and not path.name.endswith("_test.cpp"):
            lengths += [(length, f"{relative}:{first}: {name}") for first, length, name in functions_of(text)]
    if lengths:
        lengths.sort()
        p99 = lengths[min(len(lengths) - 1, int(len(lengths) * 0.99))][0]
        print(f"functions: {len(lengths)}, median {lengths[len(lengths) // 2][0]} lines, p99 {p99}, longest {lengths[-1][0]} ({lengths[-1][1]})")
        if p99 > FUNCTION_LINES_P99:
            breaches.append(f"the 99th percentile of function lengths is {p99} lines; at most {FUNCTION_LINES_P99}")
            breaches.extend(f"    {length} lines: {where}" for length, where in lengths[-10:])


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    sources = {}
    for path in tracked(root):
        text = text_of(path)
        if text is not None:
            sources[path] = text
    check_names(root, sources)
    check_links(root, sources)
    check_words(root, sources)
    check_field_words(root, sources)
    check_sizes(root, sources)
    for line in breaches:
        print(line)
    print(f"docs_check: {len(sources)} files, {len(breaches)} breaches")
    return 1 if breaches or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
