"""Misses of a recorded run: weft-pollution under valgrind's lackey, both ranks' accesses put in order and fed to weft-cachesim.

Each rank's recording is cut by its marks into phases. The exchange is serial, so the phases follow one another: 0 sends, 1 receives,
1 sends, 0 receives. Memory that ranks share is known by its file and offset, all other memory is a rank's own. What the kernel
copies from process to process (CMA) is not recorded.
"""
import json
import pathlib
import subprocess
import tempfile

from . import runner

OUTSIDE, FIRST, SEND, RECEIVE, SECOND, BEGIN = range(6)
ORDER = ((0, FIRST), (1, FIRST), (0, SEND), (1, RECEIVE), (1, SEND), (0, RECEIVE), (0, SECOND), (1, SECOND))


class Map:
    """What weft-pollution wrote about one rank."""

    def __init__(self, path, rank):
        self.rank, self.shared = rank, []
        for line in path.read_text().splitlines():
            words = line.split()
            if words[0] == "pid":
                self.pid = int(words[1])
            elif words[0] == "marks":
                self.marks = int(words[1], 16)
            else:
                start, end = (int(w, 16) for w in words[0].split("-"))
                self.shared.append((start, end, int(words[2], 16), words[3] + words[4]))

    def mark(self, address):
        place = address - self.marks
        return place // 8 if 0 <= place < 4096 else None

    def canonical(self, address, files):
        """The same number for the same byte, whichever rank touches it."""
        for start, end, offset, file in self.shared:
            if start <= address < end:
                return 1 + files.setdefault(file, len(files)) << 52 | address - start + offset
        return self.rank + 2048 << 52 | address


def beginning(path, known):
    """Where in the file the last mark stands that says that the turns begin; the start of a library may be a gigabyte before it."""
    done = subprocess.run(["grep", "-a", "-b", f" S {known.marks + 8 * BEGIN:08x},8", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise runner.Broken(f"{path.name} holds no mark of its beginning")
    return int(done.stdout.splitlines()[-1].split(":")[0])


def phases(log, known, files):
    """[(mark, [(kind, address, bytes)])] of a recording from its beginning mark on."""
    found = []
    for line in log:
        if line[:1] != " " or line[2:3] != " ":
            continue
        kind, _, rest = line.strip().partition(" ")
        address, _, size = rest.strip().partition(",")
        address = int(address, 16)
        mark = known.mark(address)
        if mark is not None:
            found.append((mark, []))
        elif found:
            found[-1][1].append(("S" if kind == "M" else kind, known.canonical(address, files), int(size)))
    return found


def turns_of(parts):
    """The phases of each turn, by mark."""
    turns = []
    for mark, accesses in parts:
        if mark == FIRST:
            turns.append({})
        if turns and mark != OUTSIDE:
            turns[-1][mark] = accesses
    return turns


def script(both):
    """The input of weft-cachesim: all turns, the misses of the last one's exchange and second reading counted."""
    last = len(both[0]) - 1
    for number in range(last + 1):
        for rank, mark in ORDER:
            if number == last and (rank, mark) in ((0, SEND), (0, SECOND)):
                yield "forget\n"
            for kind, address, size in both[rank][number][mark]:
                yield f"{rank} {kind} {address:x} {size}\n"
            if number == last and (rank, mark) in ((0, RECEIVE), (1, SECOND)):
                yield f"counts {'exchange' if mark == RECEIVE else 'reading'}\n"


def misses(library, data_bytes, message_bytes, order, buffer):
    """{"exchange": counts, "reading": counts} of both cores, as weft-cachesim prints them."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = library.command(2, "weft-pollution", ["--trace", folder / "map", "-m", data_bytes, "--message", message_bytes,
                                                        "--order", order, "--buffer", buffer, "--no-pin"])
        program = command.index(str(library.programs / "weft-pollution"))
        command[program:program] = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={folder}/log.%p"]
        runner.execute(command, library.environment(), timeout_s=300)
        files, both = {}, []
        for rank in range(2):
            known = Map(folder / f"map.{rank}", rank)
            path = folder / f"log.{known.pid}"
            with open(path, encoding="latin-1") as log:
                log.seek(beginning(path, known))
                both.append(turns_of(phases(log, known, files)))
        if len(both[0]) != len(both[1]) or not both[0]:
            raise runner.Broken(f"{library.label}: the recordings hold {len(both[0])} and {len(both[1])} turns")
        done = subprocess.run([str(library.programs / "weft-cachesim")], input="".join(script(both)), capture_output=True, text=True,
                              timeout=120)
        if done.returncode:
            raise runner.Broken(f"weft-cachesim: {done.stderr.strip()}")
        return {record["name"]: record["cores"] for record in map(json.loads, done.stdout.splitlines())}


def usable():
    """Why recordings cannot be made here, or None."""
    try:
        subprocess.run(["valgrind", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "valgrind is not installed"
    return None


