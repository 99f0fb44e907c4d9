"""Reads what callgrind leaves: the phases of `counted`, which code their instructions are, and of what kind."""
import re
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Spot:
    """An instruction, or a line of one function, that cost something itself."""
    object: str
    function: str
    file: str
    line: int
    address: int


def phases(out):
    """{phase: {calls: [instructions of each repetition]}} from the dumps of one run, and for each phase the dump of its
    usual repetition: one in which the peer was late and the ring full takes another way, and is no example."""
    dumps = {}
    for path in out.glob("callgrind.*"):
        head = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (\S+) (\d+)$", head, re.M)
        cost = re.search(r"^summary: (\d+)", head, re.M)
        if name and cost:
            dumps.setdefault((name[1], int(name[2])), []).append((int(cost[1]), path))
    found, files = {}, {}
    for (phase, calls), each in dumps.items():
        each.sort()
        found.setdefault(phase, {})[calls] = [instructions for instructions, _ in each]
        files[phase, calls] = each[len(each) // 4][1]
    return found, files


class Names:
    """Callgrind writes a name once, "(3) name", and then only "(3)"; files share one numbering, whatever the record."""
    KINDS = {"fn": "fn", "cfn": "fn", "ob": "ob", "cob": "ob"}

    def __init__(self):
        self.known = {}

    def of(self, record, text):
        found = re.match(r"\((\d+)\)(?: (.*))?", text)
        if not found:
            return text
        key = (self.KINDS.get(record, "file"), found[1])
        if found[2]:
            self.known[key] = found[2]
        return self.known.get(key, "?")


def moved(old, text):
    """A position: absolute, relative to the last one, or the same."""
    if text == "*":
        return old
    return old + int(text) if text[0] in "+-" else int(text, 0)


def own_costs(dump):
    """{Spot: instructions}; inlined code stands under the file and line it was written in."""
    names, costs = Names(), {}
    where = {"ob": "?", "fn": "?", "file": "?"}
    address = line = 0
    of_callee = False
    for text in dump.read_text(errors="replace").splitlines():
        record = re.match(r"(fl|fi|fe|fn|ob|cfi|cfl|cfn|cob)=(.*)", text)
        cost = None if record else re.match(r"(?:([+-]?\d+|0x[0-9a-f]+|\*) )?([+-]?\d+|\*) (\d+)$", text)
        if record:
            name = names.of(record[1], record[2])
            if record[1] in ("fl", "fi", "fe"):
                where["file"] = name
            elif record[1] in ("fn", "ob"):
                where[record[1]] = name
        elif text.startswith("calls="):
            of_callee = True  # the next line is the callee's cost, counted where it was spent
        elif cost:
            address = moved(address, cost[1]) if cost[1] else 0
            line = moved(line, cost[2])
            if not of_callee:
                spot = Spot(where["ob"], where["fn"], where["file"], line, address)
                costs[spot] = costs.get(spot, 0) + int(cost[3])
            of_callee = False
    return costs


def annotate(dump, calls, by_line):
    """The cost of one call, by function and the file its code was written in; by line too, when asked."""
    groups = {}
    for spot, cost in own_costs(dump).items():
        file = re.sub(r"^.*/(?=(src|gen|bench)/)", "", spot.file)
        lines = groups.setdefault((spot.function, file), {})
        lines[spot.line] = lines.get(spot.line, 0) + cost
    for (function, file), lines in sorted(groups.items(), key=lambda item: -sum(item[1].values())):
        total = sum(lines.values()) / calls
        if total < 0.05:
            continue
        print(f"  {total:8.1f}  {function}  [{file}]")
        for line, cost in sorted(lines.items()) if by_line else ():
            print(f"  {'':8s}    {cost / calls:6.1f}  line {line}")


KINDS = {
    "atomic": re.compile(r"\block |\bxchg\b.*\("),   # a read-modify-write of memory
    "indirect": re.compile(r"\bcall\s+\*"),
    "plt": re.compile(r"\bcall\s.*@plt>"),
}


def kinds_in(library):
    """{address: kind} of the instructions a hot path should do without."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True,
                          check=True).stdout
    found = {}
    for line in text.splitlines():
        at = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if at:
            for kind, pattern in KINDS.items():
                if pattern.search(at[2]):
                    found[int(at[1], 16)] = kind
    return found


def kinds_executed(dump, library_name, kinds, calls):
    """How many of each kind one call executed."""
    counts = dict.fromkeys(KINDS, 0)
    for spot, cost in own_costs(dump).items():
        kind = kinds.get(spot.address) if spot.object.endswith(library_name) else None
        if kind:
            counts[kind] += cost
    return {kind: round(count / calls, 2) for kind, count in counts.items()}
