"""`weft bench coll`: every collective operation on every library, by size, ranks and form; a table for each, a result file, a
picture of each operation.

A call's time is from the moment the last rank is ready until the last one has returned (bench/mpi/coll.c); `none` is an empty
call measured the same way.
"""
import itertools
import pathlib

from . import libraries, machine, results
from .rows import against_best
from .session import Session, by_bench
from .text import Progress, median, number, size_name, spread, table

OPERATIONS = ("barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather",
              "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
              "neighbor_alltoall")
EMPTY = "none"
SIX = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall")  # those with bars
FORMS = ("blocking", "nonblocking", "persistent")
SIZES, STEP = (8, 1 << 20), 4
WINDOW = ["-r", 3, "-t", 5, "-w", 2]


def sizes_of(operation, sizes=SIZES, step=STEP):
    """As bench/mpi/coll.c goes through them: the largest is always one."""
    if operation in ("barrier", EMPTY):
        return [0]
    below = itertools.takewhile(lambda size: size < sizes[1], (sizes[0] * step ** i for i in itertools.count()))
    return [*below, sizes[1]]


def launch(prefix, ranks, operations, form="blocking", sizes=SIZES, step=STEP, cpus=None, window=WINDOW):
    """The measurement; its samples are named as key() says."""
    return by_bench(f"{prefix} {ranks} {form}", ranks,
                    ["coll", "--ops", ",".join(operations), "--form", form, "-m", f"{sizes[0]}:{sizes[1]}", "--step", step,
                     *window], cpus=cpus, timeout_s=300, shown=False)


def key(prefix, ranks, form, operation, size):
    suffix = "" if form == "blocking" else f" {form}"
    return f"{prefix} {ranks} {form} {operation}{suffix} {size_name(size)}"


def print_operation(session, ranks, form, operation, sizes, step):
    names, rows = [lib.name for lib in session.found], []
    for size in sizes_of(operation, sizes, step):
        at = key("coll", ranks, form, operation, size)
        by_name = session.samples.get(at, {})
        cells = [f"{number(median(by_name[n].values()))} ({spread(by_name[n].values())})" if n in by_name else "-"
                 for n in names]
        row = against_best(session, "", at, "us", True, None, False)
        interval = row.interval() if row.ratio is not None else None
        rows.append([size_name(size) if size else "-", *cells, "-" if row.ratio is None else number(row.ratio) + " x",
                     f"{number(interval[0])}..{number(interval[1])}" if interval else "-"])
    print(f"\n{operation}, {form}, {ranks} ranks (us a call)")
    print(table(["size", *(session.labels[n] for n in names), "best peer / Weft", "95 % interval"], rows))


def collected(session, ranks, forms, operations, sizes, step):
    """{ranks: {form: {operation: {size: {library: [values]}}}}}"""
    return {n: {form: {operation: {size: {name: list(by_rep.values()) for name, by_rep in
                                          session.samples.get(key("coll", n, form, operation, size), {}).items()}
                                   for size in sizes_of(operation, sizes, step)}
                       for operation in operations} for form in forms} for n in ranks}


def run(root, only, ranks, forms, operations, sizes, step, reps, out, pictures):
    """Returns the exit status."""
    found = libraries.compared(root, only)
    about = machine.describe()
    caption = f"{machine.caption(about)}; median (range) of n = {reps} launches, each call when all ranks are ready"
    print(caption)
    for warning in machine.warnings(about):
        print("note: " + warning)
    session = Session(found, libraries.program_dir(pathlib.Path(root).resolve()), reps)
    plan = [launch("coll", n, operations, form, sizes, step) for n in ranks for form in forms]
    session.progress = Progress(reps * len(plan))
    def so_far():
        return {"data": collected(session, ranks, forms, operations, sizes, step)}

    for rep, measurement in itertools.product(range(reps), plan):
        measurement.run(session, rep)
        session.progress.step()
        results.keep(session, about, caption, "coll", so_far(), out)
    session.progress.clear()
    for n, form, operation in itertools.product(ranks, forms, operations):
        print_operation(session, n, form, operation, sizes, step)
    results.write(session, about, caption, "coll", so_far(), out, pictures)
    return results.status(session)
