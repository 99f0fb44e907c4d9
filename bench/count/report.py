"""`weft count --report FOLDER`: every table and picture of docs/reproduction/critical-path.md, by one command.

Counts by reason in four builds, the paper's beside them; the extensions; datatypes that are constants; the code's size; the in-function counts of
the peers that are installed; rates into the null wire in four builds, and over simulated links and shared memory in two.
Left in the folder: tables.md, critical-path.json, counts.png, rates.png.
"""
import json
import pathlib
import sys
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import classes  # noqa: E402
import rates  # noqa: E402
import reasons  # noqa: E402
import weft_count as counts  # noqa: E402
from weft_bench import libraries, machine, picture  # noqa: E402
from weft_bench.text import markdown, median, number  # noqa: E402

BUILDS = ("default", *counts.OFF)
PAPER_PEERS = "the paper's MPICH/Original 253, MPICH/CH4 221"
ON_FIXED = " on MPIX_COMM_1"
EXTENSIONS = ("MPIX_Isend_global", "MPIX_Isend_npn", "MPIX_Isend_noreq", "MPIX_Isend_nomatch")
# The row of `weft count` for each rate into the null wire.
COUNT_OF_RATE = {"MPI_Isend, injection alone": "MPI_Isend, null wire", "MPI_Put": "MPI_Put of 8 B, null wire",
                 **{name: f"{name}, null wire" for name in (*EXTENSIONS, "MPIX_Isend_all_opts")}}


@dataclass
class Report:
    """tables: (title, remark, head, rows)."""
    tables: list = field(default_factory=list)
    data: dict = field(default_factory=dict)

    def add(self, title, remark, head, rows):
        self.tables.append((title, remark, head, [[str(cell) for cell in row] for row in rows]))

    def write(self, folder, caption):
        parts = [f"# The critical path: tables\n\n*Written by* `weft count --report`*, {caption}.* What they mean: [the critical path](../critical-path.md)."]
        parts += [f"## {title}\n\n{remark}\n\n{markdown(head, rows)}" for title, remark, head, rows in self.tables]
        (folder / "tables.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def whole(value):
    return f"{value:.0f}"


def add_counts(report, result):
    first = result["default"]
    report.add("Table 1: why each instruction of the default build is there", "Instructions of one call of 8 bytes into the null wire.",
               ["reason", "MPI_Isend, paper", "MPI_Isend, Weft", "MPI_Put, paper", "MPI_Put, Weft"],
               [[reason, isend, *(whole(counts.part_of(first.reasons[what], reason)) for what in counts.STAIRS[:1]), put,
                 whole(counts.part_of(first.reasons[counts.STAIRS[1]], reason))] for reason, (isend, put) in counts.PAPER_REASONS.items()])
    report.add("The staircase", "All instructions of a call, by build.",
               ["build", "MPI_Isend, paper", "MPI_Isend, Weft", "MPI_Put, paper", "MPI_Put, Weft"],
               [[build, isend, whole(result[build].counts[counts.STAIRS[0]]), put, whole(result[build].counts[counts.STAIRS[1]])]
                for build, (isend, put) in counts.PAPER_STAIRS.items()])
    for build in BUILDS:
        report.add(f"By reason, {build}", "Every call that is counted on the null wire.", ["call", *reasons.CATEGORIES, "all"],
                   [[what.partition(", null")[0], *(whole(parts[c]) if parts[c] else "" for c in reasons.CATEGORIES), whole(result[build].counts[what])]
                    for what, parts in result[build].reasons.items()])


def add_savings(report, result):
    """Each extension alone on a duplicate, and with a fixed communicator."""
    rows = []
    for build in BUILDS:
        of = result[build].counts
        plain = of["MPI_Isend on a duplicate, null wire"]
        rows.append([build, whole(plain), *(f"{whole(of[f'{name}, null wire'])} ({plain - of[f'{name}, null wire']:+.0f})" for name in EXTENSIONS),
                     *(f"{whole(of[what])} ({plain - of[what]:+.0f})" for what in ("MPI_Isend on MPIX_COMM_1, null wire", "MPIX_Isend_all_opts, null wire"))])
        rows.append([f"{build}, on MPIX_COMM_1", whole(of["MPI_Isend on MPIX_COMM_1, null wire"]),
                     *(f"{whole(of[f'{name}{ON_FIXED}, null wire'])} ({plain - of[f'{name}{ON_FIXED}, null wire']:+.0f})" for name in EXTENSIONS), "", ""])
    report.add("What the extensions save, alone and with a fixed communicator", "Instructions, and in brackets what is saved of an `MPI_Isend` on a duplicate of `MPI_COMM_WORLD`.",
               ["build", "MPI_Isend", *EXTENSIONS, "MPIX_COMM_1 alone", "MPIX_Isend_all_opts"], rows)


def add_classes(report, found):
    report.add("Datatypes that are constants", classes.PUBLISHED + ". Instructions of an `MPI_Isend` in the optimised build, by what is inlined.",
               ["class", *(f"stage {stage}: {what}" for stage, what in classes.STAGES.items())],
               [[what, *(f"{stages[s].count:.1f}" for s in classes.STAGES)] for what, stages in found.items()])
    report.add("The growth of a program", "Bytes of code of the three programs above, the library in them, and of the one function that sends.",
               ["class", *(f"stage {s}, program" for s in classes.STAGES), *(f"stage {s}, function" for s in classes.STAGES)],
               [[what, *(stages[s].text for s in classes.STAGES), *(stages[s].own for s in classes.STAGES)] for what, stages in found.items()])


def add_libraries(report, root):
    rows = []
    for build in BUILDS[:-1]:
        library = counts.variant(root, build) / "lib" / "libmpi_abi.so.1"
        rows.append([build, int(counts.call(["size", str(library)]).splitlines()[1].split()[0])])
    report.add("The library itself", "Bytes of code of the shared library, by build.", ["build", "bytes"], rows)


def add_peers(report, args, work):
    """What a peer executes inside its functions, over shared memory: none has a null wire."""
    found, _ = libraries.discover(args.root, ["mpich", "impi", "openmpi", "openmpi-ucx"])
    columns = {}
    for peer in found:
        place = work / f"peer-{peer.name}"
        place.mkdir(parents=True)
        try:
            columns[peer.label] = counts.count_peer(args, peer.name, place).counts
        except counts.Failed as why:
            print(f"weft count: {peer.label}: {why}", file=sys.stderr)
    if not columns:
        return
    place = work / "beside-peers"
    place.mkdir()
    args.null, args.reasons = False, False
    columns = {"Weft": counts.count_build(args, "default", place).counts, **columns}
    kept = [row.what for row in counts.ROWS if row.wire == "shm" and not row.own]
    report.add("Beside other libraries", f"Instructions inside the call, default builds, 8 bytes, two ranks by shared memory; {PAPER_PEERS} on its own wires.",
               ["call", *columns], [[what, *(whole(of[what]) for of in columns.values())] for what in kept])
    report.data["peers"] = columns


def add_rates(report, args, work):
    """Rates of one core; into the null wire beside the counts."""
    for way, builds in (("null", BUILDS), ("link", ("default", "optimised")), ("shm", ("default", "optimised"))):
        found = {build: dict(counts.rates_of(args, build, way, work / way)) for build in builds}
        report.data.setdefault("rates", {})[way] = {
            build: {gap: {name: [1e3 / ns for ns, _, _ in each] for name, each in calls.items()} for gap, calls in by_gap.items()} for build, by_gap in found.items()}
        rows = [row for build, by_gap in found.items() for gap, calls in by_gap.items() for row in rates.rows(build, gap, calls)]
        report.add(f"Rates {rates.WAYS[way][0]}", "Messages of 1 byte in windows of 64, medians of "
                   f"{rates.REPETITIONS} interleaved repetitions. The first row of each is the loop around a call that takes all arguments and does nothing.",
                   ["build", "gap", "call", "M/s", "quartiles", "cycles"], rows)


def ranks_of(values):
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def correlation(xs, ys):
    """Of ranks (Spearman)."""
    xs, ys = ranks_of(xs), ranks_of(ys)
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    top = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))
    return top / (sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys)) ** 0.5


def add_correlation(report, result):
    """Whether fewer instructions are more messages, over all builds and calls (the spec's check 11.4)."""
    pairs = [(result[build].counts[what], median(report.data["rates"]["null"][build][""][name]))
             for build in BUILDS for name, what in COUNT_OF_RATE.items()]
    report.add("Fewer instructions, more messages", "Rank correlation of instructions and time of a message into the null wire, over all builds and calls.",
               ["pairs", "correlation"], [[len(pairs), number(correlation([c for c, _ in pairs], [1 / r for _, r in pairs]))]])


def measure(args, work):
    report = Report()
    args.build, args.null, args.reasons = list(BUILDS), True, True
    result = counts.count(args, work / "counts")
    report.data["counts"] = {build: counted.counts for build, counted in result.items()}
    report.data["reasons"] = {build: {what: counted.reasons[what] for what in counts.STAIRS} for build, counted in result.items()}
    report.data["paper"] = counts.PAPER_STAIRS
    add_counts(report, result)
    add_savings(report, result)
    add_classes(report, classes.count_all(args.root, work / "classes"))
    add_libraries(report, args.root)
    add_rates(report, args, work / "rates")
    add_correlation(report, result)
    add_peers(report, args, work)
    return report


def run(args, work):
    """Returns the exit status."""
    folder, about = args.report, machine.describe()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        report = measure(args, work)
    except counts.Failed as why:
        print(f"weft count: {why}", file=sys.stderr)
        return counts.BROKEN
    caption = machine.caption(about)
    report.write(folder, caption)
    file = folder / "critical-path.json"
    file.write_text(json.dumps({"kind": "path", "caption": caption, "machine": about, "command": sys.argv[1:], **report.data}, indent=1), encoding="utf-8")
    print(f"Tables: {folder / 'tables.md'}\n{picture.save(file, folder)}")
    return 0
