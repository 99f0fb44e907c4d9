"""`weft bench figures`: what can be had here of Figures 4 to 13 of "Micro-Benchmarking MPI Partitioned Point-to-Point Communication" (ICPP '22).

Every launch is one of weft-bench-part, by all libraries in turn; threads are virtual cores that compute by sleeping. `--out` keeps the
numbers, `--more` adds launches to those kept there, so that a long run can be had in pieces; `--report` writes the page from all of them.
"""
import json
import pathlib
from dataclasses import dataclass

from . import figures_page, libraries, machine, project, results, runner
from .session import Session, each_library, show
from .text import Progress, median, number, size_name, table

VALUES = ("overhead", "bandwidth_MBps", "availability", "early_bird", "early_bird_partitions", "plain_us", "time_us", "communication_us")
KIB, MIB = 1 << 10, 1 << 20
COUNTS = (1, 8, 32)
SIZES, LARGE, PATTERN_SIZES = (KIB, 64 * KIB, MIB, 4 * MIB), (64 * KIB, MIB, 16 * MIB), (64 * KIB, MIB)
STYLES = ("single", "multiple", "partitioned")
GRIDS = {"sweep3d": (4, 16), "halo3d": (8, 8)}  # ranks, threads
SHORT = ("--compute-time", 10, "--iterations", 20, "--warmup", 2, "--calibration", 3)
LONG = ("--compute-time", 100, "--iterations", 5, "--warmup", 1, "--calibration", 2)


@dataclass(frozen=True)
class Launch:
    """The same program at several sizes. `weft`: variables with which Weft alone is started."""
    group: str
    name: str
    ranks: int
    args: tuple
    sizes: tuple
    weft: tuple = ()

    def key(self, size, value):
        return f"{self.name}, {size_name(size)}: {value}"


@dataclass(frozen=True)
class Panel:
    """A figure, or a part of it: curves are (label, launch)."""
    figure: str
    title: str
    value: str
    unit: str
    curves: tuple
    log: bool = True


def noisy(model, threads, group, weft=()):
    name = f"{model}, 4 % of 100 ms, n = {threads}" + (", one message" if weft else "")
    return Launch(group, name, 2, ("metrics", "--threads", threads, "--noise-type", model, "--percent-noise", 4, *LONG), LARGE, weft)


HOT = {n: Launch("overhead", f"hot cache, n = {n}", 2, ("metrics", "--threads", n, *SHORT), SIZES) for n in COUNTS}
COLD = {n: Launch("overhead", f"cold cache, n = {n}", 2, ("metrics", "--threads", n, "--cache", "cold", *SHORT), SIZES) for n in COUNTS}
UNIFORM = {n: noisy("uniform", n, "uniform") for n in (2, 8, 16, 32)}
SINGLE = {n: noisy("single", n, "single") for n in (2, 8, 16, 32)}
GAUSSIAN = noisy("gaussian", 16, "single")
ONE_MESSAGE = noisy("uniform", 8, "uniform", ("WEFT_POLICY", "part=one"))
PATTERNS = {(pattern, style): Launch("patterns", f"{pattern}, {style}", ranks,
                                     (pattern, "--threads", threads, "--style", style, "--noise-type", "single", "--percent-noise", 4,
                                      "--compute-time", 10, "--iterations", 3, "--warmup", 1, "--calibration", 2), PATTERN_SIZES)
            for pattern, (ranks, threads) in GRIDS.items() for style in STYLES}
LAUNCHES = (*HOT.values(), *COLD.values(), *UNIFORM.values(), ONE_MESSAGE, *SINGLE.values(), GAUSSIAN, *PATTERNS.values())
GROUPS = tuple(dict.fromkeys(launch.group for launch in LAUNCHES))


def by_count(launches):
    return tuple((f"n = {n}", launch) for n, launch in launches.items())


PANELS = (
    Panel("4", "overhead, 10 ms, no noise, hot cache", "overhead", "x", by_count(HOT)),
    Panel("4", "overhead, 10 ms, no noise, cold cache", "overhead", "x", by_count(COLD)),
    Panel("5", "perceived bandwidth, 10 ms, no noise", "bandwidth_MBps", "MB/s", by_count(HOT)),
    Panel("5", "perceived bandwidth, 100 ms, 4 % uniform", "bandwidth_MBps", "MB/s", by_count(UNIFORM)),
    Panel("6", "application availability, 100 ms, 4 % single", "availability", "share of 1", by_count(SINGLE), False),
    Panel("7", "application availability by noise, 100 ms, 4 %, n = 16", "availability", "share of 1",
          (("single", SINGLE[16]), ("uniform", UNIFORM[16]), ("gaussian", GAUSSIAN)), False),
    Panel("8", "early-bird communication, 100 ms, 4 % uniform", "early_bird", "share of 1", by_count(UNIFORM), False),
    *(Panel(figure, f"{pattern}, 10 ms, 4 % single, {ranks} ranks, {threads} threads: an iteration", "time_us", "us",
            tuple((style, PATTERNS[pattern, style]) for style in STYLES))
      for figure, (pattern, (ranks, threads)) in zip(("9", "11"), GRIDS.items())),
)


# ---- measuring

def measure(session, launch, rep):
    def one(library):
        if launch.weft and library.name != "weft":
            return
        for size in launch.sizes:
            lines = runner.bench(library, launch.ranks, [*launch.args, "--message-size", size, "--seed", rep + 1], 120,
                                 env=dict([launch.weft]) if launch.weft else None, program="weft-bench-part")
            samples = next(line["samples"] for line in lines if "samples" in line)
            for value in VALUES:
                defined = [v for v in samples.get(value, []) if v is not None]
                if defined:
                    session.add(rep, library.name, launch.key(size, value), median(defined))
                    show(session, rep, library.name, launch.key(size, value), median(defined))
    each_library(session, rep, launch.name, one)


def measure_all(session, groups, first):
    chosen = [launch for launch in LAUNCHES if launch.group in groups]
    session.progress = Progress(session.reps * len(chosen))
    for rep in range(first, first + session.reps):
        for launch in chosen:
            measure(session, launch, rep)
            session.progress.step()
    session.progress.clear()


def take_up(session, out):
    """The samples kept in OUT; returns the number of the next repetition."""
    file = pathlib.Path(out) / "figures.json"
    if not file.exists():
        return 0
    kept = json.loads(file.read_text(encoding="utf-8"))
    session.labels = kept["labels"] | session.labels
    for key, by_library in kept["samples"].items():
        for name, values in by_library.items():
            for rep, value in values.items():
                session.add(int(rep), name, key, value)
    return 1 + max((int(rep) for libraries_ in kept["samples"].values() for values in libraries_.values() for rep in values), default=-1)


# ---- what follows from the samples

def at(session, launch, size, value, name="weft"):
    return session.middle(launch.key(size, value), name)


def shown(value):
    return "-" if value is None else number(value)


def panel_table(session, panel):
    """(head, rows) of a panel: a row for each size, a column for each curve of each library that was measured."""
    columns = [(label, launch, name) for label, launch in panel.curves for name in session.labels
               if any(at(session, launch, size, panel.value, name) is not None for size in launch.sizes)]
    sizes = sorted({size for _, launch in panel.curves for size in launch.sizes})
    rows = [[size_name(size), *(shown(at(session, launch, size, panel.value, name)) for _, launch, name in columns)] for size in sizes]
    return ["size", *(f"{label}, {session.labels[name]}" for label, _, name in columns)], rows


def row_of(session, launches, size, value):
    return [at(session, launch, size, value) for launch in launches]


def told(values):
    return ", ".join(map(shown, values))


def counts(launches):
    return ", ".join(map(str, launches))


def verdict(values, holds):
    """`holds` of these values, or that they were not measured, or are the same."""
    if any(v is None for v in values):
        return "not measured"
    if len(values) > 2 and max(values) - min(values) < 0.01:
        return "no difference"
    return "holds" if holds(*values) else "does not hold"


def ordered(*values):
    return all(a <= b for a, b in zip(values, values[1:]))


def check_overhead(session):
    large = [at(session, HOT[1], size, "overhead") for size in SIZES if size >= MIB]
    small, last = (row_of(session, HOT.values(), size, "overhead") for size in (SIZES[0], SIZES[-1]))
    yield ("overhead of one partition tends to 1 from 1 MiB on", f"{told(large)} at 1 and 4 MiB",
           verdict(large, lambda *v: all(abs(x - 1) <= 0.1 for x in v)))
    yield ("it grows with n for small messages", f"{told(small)} for n = {counts(HOT)} at 1 KiB", verdict(small, ordered))
    yield ("it tends to 1 for large ones", f"{told(last)} for n = {counts(HOT)} at 4 MiB", verdict(last, lambda *v: max(v) <= 1.25))


def check_bandwidth(session):
    size = SIZES[-1]
    one, plain = at(session, HOT[1], size, "bandwidth_MBps"), at(session, HOT[1], size, "plain_us")
    ordinary = size / plain if plain else None
    yield ("one partition sees the ordinary bandwidth", f"{shown(one)} of {shown(ordinary)} MB/s at 4 MiB",
           verdict([one, ordinary], lambda a, b: abs(a / b - 1) <= 0.15))
    many = row_of(session, UNIFORM.values(), MIB, "bandwidth_MBps")
    yield ("with noise several see more than that", f"{told(many)} for n = {counts(UNIFORM)} at 1 MiB",
           verdict([one, *many], lambda a, *v: all(x > a for x in v[1:])))
    peaks = [max(launch.sizes, key=lambda s, l=launch: at(session, l, s, "bandwidth_MBps") or 0) for launch in UNIFORM.values()]
    yield ("the peak moves to larger messages with n", ", ".join(map(size_name, peaks)), verdict(many, lambda *_: ordered(*peaks)))


def check_noise(session):
    models = [at(session, launch, LARGE[0], "availability") for launch in (SINGLE[16], UNIFORM[16], GAUSSIAN)]
    yield ("availability: single noise above uniform and Gaussian, n = 16, small messages", f"{told(models)} at 64 KiB",
           verdict(models, lambda s, u, g: s >= max(u, g)))
    for value, what in (("early_bird", "early-bird"), ("early_bird_partitions", "partitions that arrived before the join")):
        early = [at(session, launch, LARGE[0], value) for launch in (ONE_MESSAGE, UNIFORM[8])]
        yield (f"{what}: about 0 with one message, above 0.5 without", f"{told(early)} at 64 KiB, n = 8",
               verdict(early, lambda o, m: abs(o) <= 0.05 and m > 0.5))


def checks(session):
    return [*check_overhead(session), *check_bandwidth(session), *check_noise(session)]


def gain_of_sweep(session, size=MIB):
    """An iteration by one thread by that of the partitioned style, on Weft."""
    one, parts = (at(session, PATTERNS["sweep3d", style], size, "time_us") for style in ("single", "partitioned"))
    return one / parts if one and parts else None


def projection(session):
    gain = gain_of_sweep(session)
    rows = []
    for share in (1, 6, 20.4, 54.5):
        rows.append([f"{share:g} %", number(project.speedup(share / 100, 15.1)), number(project.speedup(share / 100, gain)) if gain else "-"])
    return ["share of communication", "with the paper's 15.1", f"with {shown(gain)}, seen here"], rows


def beside_the_paper(session):
    """The prose's numbers, and those measured on Weft."""
    lines = [("overhead of one partition between 1.6 and 1", told(row_of(session, [HOT[1]], s, "overhead")[0] for s in SIZES)),
             ("overhead of 32 at worst 59.4, on two sockets", shown(max(filter(None, (at(session, HOT[32], s, "overhead") for s in SIZES)), default=None))),
             ("a cold cache has less overhead than a hot one", told(at(session, kind[32], SIZES[0], "overhead") for kind in (HOT, COLD))
              + " hot and cold, n = 32, 1 KiB"),
             ("early-bird: 2 partitions are effective already, 8 and 32 nearly equal at 100 ms",
              told(at(session, UNIFORM[n], LARGE[0], "early_bird") for n in (2, 8, 32)) + " at 64 KiB"),
             ("availability falls from about 4 MB on", told(at(session, SINGLE[16], s, "availability") for s in LARGE) + " at 64 KiB, 1 and 16 MiB, n = 16"),
             ("Sweep3D, partitioned: 15.1 times one thread's throughput", f"{shown(gain_of_sweep(session))} at 1 MiB, in equal volume")]
    return lines


def as_panels(session):
    found = []
    for panel in PANELS:
        lines = [{"library": name, "label": f"{session.labels[name]}, {label}", "dash": dash,
                  "points": [[size, [v]] for size in launch.sizes if (v := at(session, launch, size, panel.value, name)) is not None]}
                 for dash, (label, launch) in enumerate(panel.curves) for name in session.labels]
        found.append({"figure": panel.figure, "title": f"{panel.title} ({panel.unit})", "log": panel.log,
                      "lines": [line for line in lines if line["points"]]})
    return [panel for panel in found if panel["lines"]]


def sections(session):
    yield ("Shapes and orders that are to be seen", figures_page.SHAPES,
           (["Expected", "Seen", ""], checks(session)))
    yield "What the paper says in numbers", "", (["Paper", "Weft here"], beside_the_paper(session))
    for panel in PANELS:
        head, rows = panel_table(session, panel)
        if len(head) > 1:
            yield f"Figure {panel.figure}, {panel.title} ({panel.unit})", "", (head, rows)
    yield "Figure 13, projection", project.CAVEAT.replace("\n", " "), projection(session)


def run(root, only, groups, reps, out, more, report, pictures):
    """Returns the exit status."""
    found = libraries.compared(root, only, "weft-bench-part") if reps else []
    about = machine.describe()
    session = Session(found, None, reps)
    first = take_up(session, out) if more else 0
    print(machine.caption(about))
    measure_all(session, groups, first)
    for title, _, (head, rows) in sections(session):
        print(f"\n{title}\n{table(head, rows, left=2 if len(head) < 4 else 1)}")
    content = {"samples": session.samples, "panels": as_panels(session), "title": "Partitioned communication, figures of the paper"}
    results.write(session, about, machine.caption(about), "figures", content, out, pictures)
    if report:
        figures_page.write(report, session, machine.caption(about), sections(session), out)
    return results.status(session)
