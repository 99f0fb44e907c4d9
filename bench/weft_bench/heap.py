"""`weft bench heap`: the applications of apps/ on Weft and the other libraries, interleaved, in all their forms.

What a form gains is 100 (1 - T / T'), where T is Weft's time and T' that of the best peer in the form by messages, or Weft's own
in that form. T holds packing, exchange and unpacking, allocation and release included, and every byte received is read. The
other definition in use, 100 (T' / T - 1), is printed beside it.
"""
import csv
import pathlib
import sys
from dataclasses import dataclass, field

from . import libraries, machine, results, runner, traces
from .interval import median_interval
from .session import Session, at_one_pace, each_library, show
from .text import Progress, median, number, size_name, table

FORMS = ("mpi", "opi", "shared", "fused")


@dataclass
class Launch:
    """One start of a program: what it is called here, how, and whether its forms are compared."""
    key: str
    ranks: int
    program: str
    args: list
    forms: bool = True
    env: dict = field(default_factory=dict)


APPS = {
    "fft2d": [Launch("fft2d N=512", 2, "weft-fft2d", ["--n", 512, "-r", 3, "-t", 40])],
    "lj": [Launch(f"lj {name}", 2, "weft-lj", ["--cells", cells, "--steps", steps, "--check-steps", 20, "-r", 3])
           for name, cells, steps in (("1000 atoms a rank", "10,10,5", 100), ("100 atoms a rank", "5,5,2", 400),
                                      ("24 atoms a rank", "2,2,3", 1000))],
    "opbench": [Launch("opbench", 2, "weft-opbench", ["-m", "64:2097152", "-r", 3, "-t", 4])],
    "halo": [Launch("halo 15^3", 2, "weft-halo", ["--n", 15, "-r", 3, "-t", 10])],
    "pipe": [Launch(f"pipe {memory}, {use}", 2, "weft-pipe", ["-m", "8:16777216", "-r", 3, "-t", 3, "--memory", memory, *flags])
             for memory in ("malloc", "alloc_mem") for use, flags in (("reused", []), ("rewritten", ["--rewrite"]))]
            + [Launch("pipe malloc, rewritten", 2, "weft-pipe", ["-m", "8:16777216", "-r", 3, "-t", 3, "--form", "opi", "--rewrite"])],
    "pool": [Launch("pool", 2, "weft-pool", ["-r", 5], forms=False)],
    "assist": [Launch(f"assist {memory}", 2, "weft-assist", ["-m", "65536:4194304", "-r", 3, *flags], forms=False)
               for memory, flags in (("malloc", []), ("alloc_mem", ["--alloc-mem"]))],
    "pollution": [Launch("pollution", 2, "weft-pollution", ["-m", "128:32768", "-r", 3, "--turns", 200], forms=False)],
}


@dataclass
class Series:
    """What one record of a program is: a test, perhaps in a form, at a size."""
    launch: str
    test: str
    bytes: int
    unit: str
    forms: bool

    @property
    def form(self):
        return self.test.split()[0] if self.forms else None

    def in_form(self, form):
        return f"{self.launch} {' '.join([form, *self.test.split()[1:]])} {size_name(self.bytes)}"


def measure(session, series, launch, rep):
    def one(library):
        for line in runner.bench(library, launch.ranks, launch.args, 300, env=launch.env, program=launch.program):
            name = f"{launch.key} {line['test']} {size_name(line['bytes'])}"
            series[name] = Series(launch.key, line["test"], line["bytes"], line["unit"], launch.forms)
            value, pace = at_one_pace(line)
            if value is not None:
                session.add(rep, library.name, name, value, pace)
            show(session, rep, library.name, name, value, pace)
    each_library(session, rep, f"{launch.key} {' '.join(map(str, launch.args))}", one)


@dataclass
class Gain:
    launch: str
    what: str
    against: str
    time: float
    other: float
    values: list   # 100 (1 - T / T') of each pair of launches

    def record(self):
        interval = median_interval(self.values)
        return {"launch": self.launch, "what": self.what, "against": self.against, "time": self.time, "other": self.other, "improvement": median(self.values),
                "interval": interval, "n": len(self.values), "other_definition": 100 * (self.other / self.time - 1)}

    def cells(self):
        r = self.record()
        shown = f"{r['interval'][0]:.1f}..{r['interval'][1]:.1f}" if r["interval"] else "-"
        return [self.what, number(self.time), self.against, number(self.other), f"{r['improvement']:.1f}", shown,
                f"{r['other_definition']:.1f}", r["n"]]

    HEAD = ["what", "T (us)", "against", "T' (us)", "100(1-T/T')", "95 % interval", "100(T'/T-1)", "n"]


def gain(session, launch, key, other_key, name):
    ratios = session.ratios(key, name, other_key)
    if not ratios:
        return None
    label = f"{session.labels[name]}, {'messages' if name != 'weft' else 'by messages'}"
    return Gain(launch, key, label, session.middle(key), session.middle(other_key, name), [100 * (1 - r) for r in ratios.values()])


def gains(session, series):
    """For each form of each test on Weft: against the best peer's messages, and against Weft's own."""
    found = []
    for key, s in series.items():
        if not s.forms or s.form not in FORMS or key not in session.samples or s.test.endswith("rebuild"):
            continue  # rebuilding is by messages in every form
        by_messages = s.in_form("mpi")
        peers = [g for lib in session.found if lib.name != "weft" and (g := gain(session, s.launch, key, by_messages, lib.name))]
        if peers:
            found.append(min(peers, key=lambda g: median(g.values)))
        if s.form != "mpi" and (own := gain(session, s.launch, key, by_messages, "weft")):
            found.append(own)
    return found


def print_medians(session, series, names):
    labels = [session.labels.get(n, n) for n in names]
    for launch in dict.fromkeys(s.launch for s in series.values()):
        rows = []
        for key, s in series.items():
            if s.launch == launch:
                by_name = session.samples.get(key, {})
                rows.append([s.test, size_name(s.bytes), s.unit, *(number(median(by_name[n].values())) if n in by_name else "-" for n in names)])
        print(f"\n{launch}")
        print(table(["test", "size", "unit", *labels], rows, left=1))


def write_csv(path, session, series):
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["launch", "test", "bytes", "unit", "library", "median", "low", "high", "n"])
        for key, s in series.items():
            for name, by_rep in session.samples.get(key, {}).items():
                values = list(by_rep.values())
                low, high = median_interval(values) or ("", "")
                writer.writerow([s.launch, s.test, s.bytes, s.unit, name, median(values), low, high, len(values)])


def write_results(out, session, about, series, found_gains, caches, pictures):
    """OUT/heap.csv, OUT/heap.json and OUT/heap.png; nothing without a folder."""
    if not out:
        return
    content = {"gains": [g.record() for g in found_gains], "caches": caches,
               "series": {key: {"launch": s.launch, "test": s.test, "bytes": s.bytes, "unit": s.unit, "forms": s.forms,
                                "samples": {n: list(v.values()) for n, v in session.samples.get(key, {}).items()}}
                          for key, s in series.items()}}
    caption = f"{machine.caption(about)}; medians of {session.reps} launches, 95 % intervals, 2 ranks pinned"
    results.write(session, about, caption, "heap", content, out, pictures)
    write_csv(pathlib.Path(out) / "heap.csv", session, series)


def count_misses(session, sizes):
    """Simulated misses of the lines of a second reading and of an exchange, for each library; see traces.py."""
    why = traces.usable()
    if why:
        print(f"no cache misses are simulated: {why}")
        return []
    rows, records = [], []
    for size in sizes:
        for order in ("sequential", "random"):
            for buffer in ("common", "separate"):
                for library in session.found:
                    try:
                        counted = traces.misses(library, size, size, order, buffer)
                    except runner.Broken as broken:
                        session.broken[f"{library.name}: caches"] = str(broken)
                        continue
                    lines = size / 64
                    records.append({"library": library.name, "bytes": size, "order": order, "buffer": buffer, **counted})
                    rows.append([f"{order} {buffer}", size_name(size), library.label,
                                 *(f"{sum(c[level] for c in counted['exchange']) / 4 / lines:.2f}" for level in ("l1", "l2", "l3")),
                                 f"{sum(c['l1'] for c in counted['reading']) / 2 / lines:.2f}"])
    print("\nSimulated misses (two cores, 32 KiB, 256 KiB, 20 MiB): of a one-way message in shares of its lines, mean of both ranks, "
          "and of the second reading in shares of the data's lines; copies by the kernel are not seen")
    print(table(["data", "size", "library", "L1", "L2", "L3", "reading, L1"], rows, left=1))
    return records


def plan_of(apps, sweep):
    """Every launch, or those of Weft alone with each value of a variable."""
    launches = [launch for app in apps for launch in APPS[app]]
    if not sweep:
        return launches
    name, _, values = sweep.partition("=")
    return [Launch(f"{name}={value} {launch.key}", launch.ranks, launch.program, launch.args, False, {name: value})
            for launch in launches for value in values.split(",")]


def with_allocators(launches, library):
    """The control of what the allocator alone does: each launch of Weft with libc's malloc, with the heap's allocator on private memory,
    and on memory that the ranks share."""
    tree = pathlib.Path(library.launch[0]).parent.parent
    preload = next(tree.glob("lib*/**/libweft_malloc.so"), None)
    if preload is None:
        raise SystemExit(f"weft bench: there is no libweft_malloc.so in {tree}: Weft was built without mimalloc")
    allocators = {"libc": {}, "mimalloc, private": {"LD_PRELOAD": str(preload)}, "mimalloc, shared": {"MPIEXEC_SHARED_HEAP": "1"}}
    return [Launch(f"{launch.key}, {name}", launch.ranks, launch.program, launch.args, False, env)
            for launch in launches for name, env in allocators.items()]


def measure_all(session, launches):
    """{series by name}: every launch in every repetition."""
    series = {}
    session.progress = Progress(session.reps * len(launches))
    for launch in launches:
        for rep in range(session.reps):
            measure(session, series, launch, rep)
            session.progress.step()
    session.progress.clear()
    return series


def run(root, only, apps, reps, out, sweep=None, allocators=False, caches=None, pictures=True):
    """Returns the exit status."""
    found = libraries.compared(root, ["weft"] if sweep or allocators else only)
    about = machine.describe()
    print(machine.caption(about))
    for warning in machine.warnings(about):
        print("note: " + warning)
    session = Session(found, None, reps)
    launches = plan_of(apps, sweep)
    series = measure_all(session, with_allocators(launches, found[0]) if allocators else launches)
    print_medians(session, series, [lib.name for lib in found])
    found_gains = gains(session, series)
    if found_gains:
        print("\nWhat Weft's forms gain (an interval above 0: less time)")
        print(table(Gain.HEAD, [g.cells() for g in found_gains], left=1))
    counted = count_misses(session, caches) if caches else []
    write_results(out, session, about, series, found_gains, counted, pictures)
    status = results.status(session)
    return status if any(lib.name == "weft" for lib in found) else 1
