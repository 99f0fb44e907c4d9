"""Why each instruction of a call is there: callgrind's lines of source, told apart by the text of the line that they were written in.

The categories are those of "Why Is MPI So Slow?" (SC17): four that a build can leave out, and what the standard itself asks for. A rule
names the files and the lines that it is about; the first that fits decides. What no rule fits is `other`: copying, the protocol, the wire.
"""
import functools
import pathlib
import re

import callgrind

REMOVABLE = ("error check", "thread check", "call", "redundant checks")
MANDATORY = ("address", "window offset", "object", "proc-null", "request", "match", "other")
CATEGORIES = REMOVABLE + MANDATORY

# (category, file, line)
RULES = tuple((category, re.compile(file), re.compile(line)) for category, file, line in (
    ("error check", r"api/bindings\.hpp$", r""),
    ("error check", r"(gen/entry_|api/)", r"WEFT_CHECKS|^\s*&& |reject|reaches\(|bindings::"),
    ("error check", r"obj/addresses\.hpp$", r""),
    ("error check", r"obj/comm\.hpp$", r"valid_peer"),
    ("error check", r"obj/process\.hpp$", r"is_fixed"),
    ("window offset", r"rma/(short|window)\.hpp$", r"offset = |mul_overflow|part\.base"),
    ("redundant checks", r"rma/short\.hpp$", r"is_dense|bytes_of|origin\.type|t\.elem"),
    ("error check", r"rma/short\.hpp$", r"Kind::win|WEFT_CHECKS|open_epochs|no_data_at|add_overflow|part\.bytes"),
    ("error check", r"atomic_base\.h$", r"__atomic_load_n"),
    ("thread check", r"lane/lane\.hpp$", r"threads|lock|taken_|Lane(Try|Guard)|guard"),
    ("thread check", r"p2p/send\.hpp$", r"guard"),
    ("redundant checks", r"type/(predefined|type)\.hpp$", r""),
    ("redundant checks", r"obj/handles\.hpp$", r"type|Type"),
    ("redundant checks", r"p2p/send\.hpp$", r"is_dense|bytes_of"),
    ("object", r"obj/handles\.hpp$", r"slot|Comm|comm|Win|win"),
    ("object", r"rma/window\.hpp$", r"window_of"),
    ("address", r"p2p/send\.hpp$", r"routes|to\.way|to\.index|inline_max"),
    ("address", r"api/critical_path\.cpp$", r"routes"),
    ("address", r"rma/short\.hpp$", r"reach|parts\[target\]"),
    ("call", r"(gen/entry_|api/)", r"^(static |inline )*int \w+\(|return fast_|MPI_Request ?\* ?request\) \{$"),
    ("request", r"(gen/entry_|api/)", r"request|request_"),
    ("request", r"p2p/send\.hpp$", r"sent_request|\*out"),
    ("request", r"obj/handles\.hpp$", r"Request|request"),
    ("match", r"wire/wire\.hpp$", r""),
    ("match", r"p2p/send\.hpp$", r"Header|header"),
    ("match", r"wire/(null|shm)/\w+\.hpp$", r"tag|context|word|pack"),
    ("call", r"(gen/entry_|api/)", r"return|^}|^int |^static int |PMPIX?_|MPIX?_\w+\("),
    ("call", r"bench/count/counted\.c$", r""),
))


@functools.lru_cache(maxsize=None)
def lines_of(path):
    return pathlib.Path(path).read_text(errors="replace").splitlines() if path else []


class Sources:
    """Finds the file that a dump names: of the source tree, or generated into the build tree `tree`."""

    def __init__(self, project, tree):
        self.places = ((re.compile(r"(?:^|/)((?:src|bench|include)/.*)"), project), (re.compile(r"(?:^|/)(gen/.*)"), tree))

    @functools.lru_cache(maxsize=None)
    def find(self, name):
        for pattern, root in self.places:
            found = pattern.search(name)
            if found and (root / found[1]).is_file():
                return root / found[1]
        return None

    def text(self, name, line):
        lines = lines_of(self.find(name))
        return lines[line - 1] if 0 < line <= len(lines) else ""


def reason(sources, spot):
    text = sources.text(spot.file, spot.line)
    for category, file, line in RULES:
        if file.search(spot.file) and line.search(text):
            return category
    return "other"


def by_reason(sources, dump):
    """{category: instructions} of a whole dump."""
    costs = dict.fromkeys(CATEGORIES, 0)
    for spot, cost in callgrind.own_costs(dump).items():
        costs[reason(sources, spot)] += cost
    return costs


def per_call(sources, dumps, phase, slope, long, short):
    """{category: instructions of one call}: of what ran inside, or of the slope between two lengths of a loop less an empty one's."""
    def of(name, calls):
        return by_reason(sources, dumps[name, calls])
    costs = of(phase, long)
    if not slope:
        return {category: cost / long for category, cost in costs.items()}
    less, empty_long, empty_short = of(phase, short), of("empty", long), of("empty", short)
    return {c: (costs[c] - less[c] - empty_long[c] + empty_short[c]) / (long - short) for c in CATEGORIES}
