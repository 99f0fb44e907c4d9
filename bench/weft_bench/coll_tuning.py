"""What `weft tune --coll` compares and how it decides: the algorithms of each collective operation, by members and bytes.

A launch forces one algorithm on each operation (WEFT_COLL_FORCE), another one is as shipped. An algorithm becomes a row where the
95 % interval of the ratio of times lies below 1 and its median below 0.9. So many pairs are compared that some look faster by chance:
what was chosen is measured again as a table, and only what is faster then, too, is written. Lines are no candidate, as shipped rows
take them wherever they can be taken.
"""
import itertools
from dataclasses import dataclass, field

from .interval import median_interval
from .text import median, number, size_name

ALGORITHMS = {
    "barrier": ("stages", "dissemination", "tree"),
    "bcast": ("stages", "linear", "binomial", "knomial", "ring"),
    "reduce": ("stages", "binomial", "halving"),
    "allreduce": ("stages", "tree", "doubling", "halving", "ring"),
    "allgather": ("stages", "doubling", "bruck", "ring"),
    "alltoall": ("stages", "pairwise", "bruck"),
    "gather": ("stages", "linear", "binomial"),
    "scatter": ("stages", "linear", "binomial"),
    "reduce_scatter": ("stages", "pairwise", "tree"),
    "scan": ("stages", "doubling", "chain"),
}
SHIPPED, CHOSEN = "shipped", "chosen"   # what the shipped table takes, and the one that was found
FASTER = 0.9
SLOT = 4096                             # lines serve up to so many bytes
TOTALS = ("alltoall", "scatter", "reduce_scatter")   # the table counts all blocks of these, the measurement one


@dataclass
class Samples:
    """{(ranks, operation, size, algorithm): {repetition: microseconds}}"""
    values: dict = field(default_factory=dict)

    def add(self, ranks, operation, size, algorithm, rep, value):
        self.values.setdefault((ranks, operation, size, algorithm), {})[rep] = value

    def of(self, ranks, operation, size, algorithm):
        return self.values.get((ranks, operation, size, algorithm), {})

    def ratios(self, ranks, operation, size, algorithm):
        """Of its time to that of the shipped choice, launch by launch."""
        mine, shipped = self.of(ranks, operation, size, algorithm), self.of(ranks, operation, size, SHIPPED)
        return [mine[rep] / shipped[rep] for rep in sorted(mine.keys() & shipped.keys())]


@dataclass(frozen=True)
class Row:
    operation: str
    ranks: int
    sizes: tuple       # measured ones, adjacent
    algorithm: str
    ratio: float       # of times, the median over launches and sizes


def launches(operations):
    """The algorithms to force: {operation: algorithm} for each launch; as many launches as the operation with the most has."""
    columns = itertools.zip_longest(*(ALGORITHMS[o] for o in operations))
    return [{o: a for o, a in zip(operations, column) if a} for column in columns]


def forced(column):
    return {"WEFT_COLL_FORCE": ",".join(f"{o}={a}" for o, a in column.items())}


def table_bytes(operation, ranks, size):
    return size * ranks if operation in TOTALS else size


def is_faster(ratios):
    between = median_interval(ratios)
    return between is not None and between[1] < 1 and median(ratios) < FASTER


def best(samples, ranks, operation, size):
    """The algorithm to take here, or None for the shipped choice."""
    found = {a: samples.ratios(ranks, operation, size, a) for a in ALGORITHMS[operation]}
    faster = {a: median(r) for a, r in found.items() if is_faster(r)}
    return min(faster, key=faster.get, default=None)


def keeps_lines(row, sizes):
    """A row that begins and ends among the sizes of lines would end their use for all larger ones."""
    after = [size for size in sizes if size > row.sizes[-1]]
    return not after or table_bytes(row.operation, row.ranks, after[0]) > SLOT


def choose(samples, ranks, operation, sizes):
    """Rows of adjacent sizes."""
    rows = []
    for algorithm, group in itertools.groupby(sizes, key=lambda size: best(samples, ranks, operation, size)):
        if algorithm:
            found = tuple(group)
            every = [r for size in found for r in samples.ratios(ranks, operation, size, algorithm)]
            rows.append(Row(operation, ranks, found, algorithm, median(every)))
    return [row for row in rows if keeps_lines(row, sizes)]


def confirmed(samples, rows, sizes_of):
    """Those that are faster in the second measurement, at all of their sizes."""
    return [row for row in rows if all(is_faster(samples.ratios(row.ranks, row.operation, size, CHOSEN)) for size in row.sizes)
            and keeps_lines(row, sizes_of(row.operation))]


def members(ranks, measured):
    """From this number to below the next one; from the largest, to below twice as many."""
    end = min((n for n in measured if n > ranks), default=2 * ranks) - 1
    return str(ranks) if end == ranks else f"{ranks}-{end}"


def line(row, measured, sizes, cpus):
    """As WEFT_COLL_TABLE has it. The smallest size stands for all below, the largest for all above."""
    after = [size for size in sizes if size > row.sizes[-1]]
    least = 0 if row.sizes[0] == sizes[0] else table_bytes(row.operation, row.ranks, row.sizes[0])
    most = table_bytes(row.operation, row.ranks, after[0]) - 1 if after else ""
    shared = "shared" if row.ranks > cpus else "own"
    return f"{row.operation:<15} {members(row.ranks, measured):<8} {shared:<7} {f'{least}-{most}':<18} {row.algorithm}"


def file_text(rows, measured, sizes_of, about, caption, version, reps):
    lines = [f"# weft tune --coll: {caption}", f"# {version}",
             f"# {reps} launches of each algorithm, blocking calls; rows that were faster by 10 % or more in two measurements",
             "# operation     members  cpus    bytes              algorithm       # time by that of the shipped choice"]
    lines += [f"{line(row, measured, sizes_of(row.operation), about['cpus']):<66} # {number(row.ratio)}" for row in rows]
    return "\n".join(lines) + "\n"


HEAD = ("operation", "ranks", "size", "shipped us", "least..most", "algorithm", "by shipped", "95 % interval")


def report(samples, rows):
    """A line for each size of each row."""
    found = []
    for row, size in ((row, size) for row in rows for size in row.sizes):
        ratios = samples.ratios(row.ranks, row.operation, size, row.algorithm)
        shipped = sorted(samples.of(row.ranks, row.operation, size, SHIPPED).values())
        low, high = median_interval(ratios)
        found.append([row.operation, row.ranks, size_name(size) if size else "-", number(median(shipped)), f"{number(shipped[0])}..{number(shipped[-1])}",
                      row.algorithm, number(median(ratios)), f"{number(low)}..{number(high)}"])
    return found


def collected(samples, measured, operations, sizes_of):
    """As `weft bench coll` has it, an algorithm in the place of a library: the shipped choice has Weft's name."""
    def by_algorithm(n, operation, size):
        found = {a: samples.of(n, operation, size, a) for a in (SHIPPED, *ALGORITHMS[operation])}
        return {"weft" if a == SHIPPED else a: list(by_rep.values()) for a, by_rep in found.items() if by_rep}

    return {n: {"blocking": {o: {size: by_algorithm(n, o, size) for size in sizes_of(o)} for o in operations}} for n in measured}
