"""`weft bench apps`: the two application studies of "Why is MPI so slow?" (sections 4.3 and 4.4) on Weft and the other libraries, interleaved.

weft-sem: conjugate gradients on a spectral-element mass matrix; its metric is grid-point iterations per CPU-second. weft-lj: molecular
dynamics of a Lennard-Jones liquid; its metric is the time of a step by atoms of a rank. Both are strong scaling: how small a rank's part may
become. The paper's model is fed by what is measured: T_P = O + W / P, with W / P the same work without other ranks, O what is
left of the time, and the parallel efficiency W / (W + P O).
"""
import csv
import pathlib
import sys
from dataclasses import dataclass

from . import libraries, machine, results, runner, studies_page
from .interval import median_interval
from .session import Session, at_one_pace, each_library, show
from .text import Progress, median, number, size_name, table

STUDIES = ("sem", "lj")
ORDERS, ELEMENTS = [3, 5, 7], (1, 128)
# Boxes in cells of four atoms, by ranks and atoms of a rank; of the paper's 23 atoms the nearest that boxes allow.
BOXES = {2: {24: "2,2,3", 100: "5,5,2", 1000: "10,10,5"}, 4: {24: "2,3,4", 100: "4,5,5", 1000: "10,10,10"},
         8: {24: "3,4,4", 100: "5,5,8", 1000: "10,10,20"}}
LJ_STEPS = {24: 1000, 100: 400, 1000: 100}
TOGETHER, ALONE = "together", "alone"   # a rank's time among the others, and the same work without them


@dataclass(frozen=True)
class Launch:
    """One start of a program. weft-sem: of one order, a point for each of its records; weft-lj: all records belong to the point `of`."""
    key: str
    ranks: int
    program: str
    args: tuple
    order: int = 0
    of: object = None


@dataclass(frozen=True)
class Point:
    """One problem on so many ranks; per_rank counts grid points (E / P N^3) or atoms."""
    study: str
    series: str
    ranks: int
    per_rank: int

    def key(self, kind):
        return f"{self.study} {self.series}, {self.ranks} ranks, {self.per_rank} a rank, {kind}"


@dataclass(frozen=True)
class Model:
    """T_P = O + W / P: O in microseconds, W / P by grid points or atoms of a rank."""
    overhead: float
    work: float

    def efficiency(self, per_rank):
        return self.work * per_rank / (self.work * per_rank + self.overhead)

    @property
    def half(self):
        """Grid points or atoms of a rank at which half of the time is overhead."""
        return self.overhead / self.work


def sem_launches(ranks, orders, elements):
    for p in ranks:
        for order in orders:
            yield Launch(f"sem N={order}, {p} ranks", p, "weft-sem",
                         ("--order", order, "--elements", f"{elements[0]}:{elements[1]}", "-r", 3, "-t", 8, "--no-check"), order)


def lj_launches(ranks):
    for p in ranks:
        for atoms, cells in BOXES[p].items():
            point = Point("lj", "liquid", p, atoms)
            args = ("--cells", cells, "--form", "mpi", "--steps", LJ_STEPS[atoms], "--check-steps", 20, "-r", 3)
            yield Launch(f"lj {atoms} atoms a rank, {p} ranks", p, "weft-lj", args, of=point)
            yield Launch(f"lj {atoms} atoms a rank, {p} ranks' box on one", 1, "weft-lj", args, of=point)


def plan_of(studies, ranks, orders, elements):
    return [*(sem_launches(ranks, orders, elements) if "sem" in studies else ()), *(lj_launches(ranks) if "lj" in studies else ())]


def read_sem(launch, line):
    """What a record of weft-sem is: "iteration, 8 elements"."""
    kind, _, elements = line["test"].partition(", ")
    point = Point("sem", f"N = {launch.order}", launch.ranks, int(elements.split()[0]) * launch.order ** 3)
    return point, TOGETHER if kind == "iteration" else ALONE, 1


def read_lj(launch, line):
    """One rank alone does the work that else the CPUs share; None for what is no whole step."""
    if line["test"] != "mpi application":
        return None
    return (launch.of, TOGETHER, 1) if launch.ranks > 1 else (launch.of, ALONE, min(launch.of.ranks, len(runner.cpus())))


def verify(session, launch):
    """weft-sem against a serial solve, before all times, which a library that fails does not get; weft-lj does that at each start."""
    args = ["--order", launch.order, "--elements", "1:8", "--check"]
    each_library(session, 0, launch.key, lambda library: runner.bench(library, launch.ranks, args, 300, program=launch.program))


def measure(session, points, launch, rep):
    def one(library):
        for line in runner.bench(library, launch.ranks, launch.args, 300, program=launch.program):
            read = (read_sem if launch.program == "weft-sem" else read_lj)(launch, line)
            value, pace = at_one_pace(line)
            if read is None or value is None:
                continue
            point, kind, share = read
            if kind == TOGETHER:
                points[point] = line["bytes"]
            session.add(rep, library.name, point.key(kind), value / share, pace)
            show(session, rep, library.name, point.key(kind), value / share, pace)
    each_library(session, rep, launch.key, one)


def measure_all(session, launches):
    """{point: bytes of its largest message}"""
    points = {}
    session.progress = Progress(session.reps * len(launches))
    for launch in launches:
        if launch.program == "weft-sem":
            verify(session, launch)
    for rep in range(session.reps):
        for launch in launches:
            measure(session, points, launch, rep)
            session.progress.step()
    session.progress.clear()
    return points


# ---- what follows from the samples

def pairs(session, point, name):
    """(time among others, work alone) of each repetition that has both."""
    both = [session.samples.get(point.key(kind), {}).get(name, {}) for kind in (TOGETHER, ALONE)]
    return [(both[0][rep], both[1][rep]) for rep in both[0] if rep in both[1]]


def overhead(session, point, name):
    found = pairs(session, point, name)
    return median(t - w for t, w in found) if found else None


def efficiency(session, point, name):
    found = pairs(session, point, name)
    return median(w / t for t, w in found) if found else None


def rate(point, us):
    """Grid-point iterations, or atom steps, per CPU-second, in millions. Ranks that share a CPU share its seconds."""
    return point.per_rank * point.ranks / (us * min(point.ranks, len(runner.cpus())))


def series_of(points):
    """{(study, series, ranks): points by size}"""
    found = {}
    for point in sorted(points, key=lambda p: (STUDIES.index(p.study), p.series, p.ranks, p.per_rank)):
        found.setdefault((point.study, point.series, point.ranks), []).append(point)
    return found


def model_of(session, points, name):
    """O of the smallest problem, where it is nearly all, and the work of the largest, where O is least; None without both."""
    smallest, largest = points[0], points[-1]
    o, alone = overhead(session, smallest, name), session.middle(largest.key(ALONE), name)
    return Model(o, alone / largest.per_rank) if o is not None and o > 0 and alone else None


def gain(session, point):
    """(peer, its time by Weft's, 95 % interval or None): the best peer's; None without a peer."""
    key = point.key(TOGETHER)
    peer = session.best_peer(key, min)
    ratios = session.ratios(key, peer) if peer else None
    if not ratios:
        return None
    values = [1 / r for r in ratios.values()]
    return peer, median(values), median_interval(values)


# ---- tables

def times_table(session, points, sizes, names):
    """Rows of one series: times, the metric, and Weft against the best peer."""
    rows = []
    for point in points:
        times = [session.middle(point.key(TOGETHER), n) for n in names]
        g = gain(session, point)
        shown = [session.labels[g[0]], number(g[1]), f"{number(g[2][0])}..{number(g[2][1])}" if g[2] else "-"] if g else ["-", "-", "-"]
        mine = session.middle(point.key(TOGETHER))
        rows.append([point.per_rank, size_name(sizes[point]), *(number(t) for t in times), number(rate(point, mine)) if mine else "-", *shown])
    head = ["a rank", "largest message", *(f"{session.labels[n]} (us)" for n in names), "Weft (million/CPU-s)", "best peer", "its time by Weft's",
            "95 % interval"]
    return head, rows


def model_table(session, points, names):
    """Rows of one series: for each library O and efficiency, measured and by the model."""
    rows = []
    models = {n: m for n in names if (m := model_of(session, points, n))}
    for point in points:
        row = [point.per_rank]
        for n in models:
            o, e = overhead(session, point, n), efficiency(session, point, n)
            row += [number(o) if o is not None and o > 0 else "-", f"{e:.2f}" if e else "-", f"{models[n].efficiency(point.per_rank):.2f}"]
        rows.append(row)
    return ["a rank", *(f"{session.labels[n]} {what}" for n in models for what in ("O (us)", "efficiency", "model"))], rows


def title_of(study, series, ranks):
    unit = "grid points" if study == "sem" else "atoms"
    name = f"mass matrix, {series}" if study == "sem" else "Lennard-Jones liquid"
    shared = "" if ranks <= len(runner.cpus()) else f" on {len(runner.cpus())} CPUs"
    return f"{name}, {ranks} ranks{shared}, by {unit} of a rank"


def print_tables(session, sizes, names):
    for (study, series, ranks), points in series_of(sizes).items():
        print("\n" + title_of(study, series, ranks))
        print(table(*times_table(session, points, sizes, names), left=0))
        print(table(*model_table(session, points, names), left=0))


def records(session, sizes):
    return [{"study": p.study, "series": p.series, "ranks": p.ranks, "per_rank": p.per_rank, "bytes": size,
             "samples": {lib.name: {kind: list(session.samples.get(p.key(kind), {}).get(lib.name, {}).values()) for kind in (TOGETHER, ALONE)}
                         for lib in session.found}}
            for p, size in sizes.items()]


def models(session, sizes):
    found = []
    for (study, series, ranks), points in series_of(sizes).items():
        for lib in session.found:
            if m := model_of(session, points, lib.name):
                found.append({"study": study, "series": series, "ranks": ranks, "library": lib.name, "overhead_us": m.overhead,
                              "work_us": m.work, "half": m.half})
    return found


def write_csv(path, session, sizes):
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["study", "series", "ranks", "per rank", "bytes", "library", "time us", "work us", "overhead us", "efficiency",
                         "million per CPU-second", "n"])
        for point, size in sizes.items():
            for lib in session.found:
                found = pairs(session, point, lib.name)
                if found:
                    time = session.middle(point.key(TOGETHER), lib.name)
                    writer.writerow([point.study, point.series, point.ranks, point.per_rank, size, lib.name, time,
                                     session.middle(point.key(ALONE), lib.name), overhead(session, point, lib.name),
                                     efficiency(session, point, lib.name), rate(point, time), len(found)])


def gains_between(session, points, low, high):
    """The best peer's time by Weft's for parts of that size: "1.20 to 1.31", one number, or "-"."""
    values = [g[1] for p in points if low <= p.per_rank <= high and (g := gain(session, p))]
    return "-" if not values else number(values[0]) if len(values) == 1 else f"{number(min(values))} to {number(max(values))}"


def findings(session, sizes):
    """What the page puts beside the paper's statements, in their order: of the fewest ranks."""
    fewest = min(p.ranks for p in sizes)
    series = {(study, name): points for (study, name, ranks), points in series_of(sizes).items() if ranks == fewest}
    sem = {name: points for (study, name), points in series.items() if study == "sem"}

    def each(of):
        return "; ".join(f"{name}: {of(points)}" for name, points in sem.items()) or "-"

    def largest_rate(points):
        time = session.middle(points[-1].key(TOGETHER))
        return number(rate(points[-1], time)) if time else "-"

    def half(points):
        m = model_of(session, points, "weft")
        return number(m.half) if m else "-"

    liquid = series.get(("lj", "liquid"), [])[:1]
    shares = [f"{lib.label}: {e:.2f}" for p in liquid for lib in session.found if (e := efficiency(session, p, lib.name))]
    return [each(lambda points: gains_between(session, points, 100, 1000)), each(lambda points: gains_between(session, points[-1:], 0, 1e9)),
            each(lambda points: f"{gains_between(session, points[1:2], 0, 1e9)} to {gains_between(session, points[:1], 0, 1e9)}"),
            each(largest_rate), each(half), "; ".join(shares) or "-"]


def write_page(report, session, caption, sizes, names, picture):
    sections = [(title_of(*key), [times_table(session, points, sizes, names), model_table(session, points, names)])
                for key, points in series_of(sizes).items()]
    found = models(session, sizes)
    ours = {(m["study"], m["series"], m["ranks"]): m["overhead_us"] for m in found if m["library"] == "weft"}
    halves = []
    for m in found:
        mine = ours.get((m["study"], m["series"], m["ranks"]))
        halves.append([f"{m['study']}, {m['series']}, {m['ranks']} ranks", session.labels[m["library"]], number(m["overhead_us"]),
                       number(m["work_us"], 4), number(m["half"]), number(m["overhead_us"] / mine) if mine else "-"])
    command = " ".join(["weft bench", *sys.argv[1:]])
    studies_page.write(report, command, caption, sorted({p.ranks for p in sizes}), sections, findings(session, sizes), halves, picture)


def run(root, only, studies, ranks, orders, elements, reps, out, report=None, pictures=True):
    """Returns the exit status."""
    strange = [p for p in ranks if p not in BOXES]
    if strange:
        raise SystemExit(f"weft bench: ranks are {', '.join(map(str, BOXES))}, not {strange[0]}")
    found = libraries.compared(root, only, "weft-sem")
    about = machine.describe()
    print(machine.caption(about))
    for warning in machine.warnings(about):
        print("note: " + warning)
    session = Session(found, None, reps)
    sizes = measure_all(session, plan_of(studies, ranks, orders, elements))
    names = [lib.name for lib in found]
    print_tables(session, sizes, names)
    caption = f"{machine.caption(about)}; medians of {reps} launches"
    if out:
        results.write(session, about, caption, "apps", {"points": records(session, sizes), "models": models(session, sizes)}, out, pictures)
        write_csv(pathlib.Path(out) / "apps.csv", session, sizes)
    if report:
        write_page(report, session, caption, sizes, names, pathlib.Path(out) / "apps.png" if out and pictures else None)
    return results.status(session)
