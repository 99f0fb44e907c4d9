"""`weft bench bars`: every bar the project sets itself, measured with default settings and interleaved repetitions.

One repetition is one launch of every library; its value is the median of the windows inside that launch. A bar against
another library is the median of the ratios of launches that belong together. A virtual machine may move its CPUs between one
cache and two within seconds, which is worth a factor of three; so the program reads what a bare cache line takes before and
after each window, and launches belong together which met the same pace, the nearest in time first. Where the program does not
tell, those of one repetition belong together. All values are printed, then the table. A missed bar is a result, not an error:
the exit status tells only whether it could be measured.
"""
import json
import pathlib
import subprocess
import sys
from dataclasses import dataclass

from . import libraries, machine, runner
from .text import Progress, geometric_mean, median, number, size_name, spread, table

LARGE = (4 << 10, 4 << 20)
MEAN_FROM = 64 << 10


@dataclass
class Row:
    what: str
    measured: str
    against: str
    ratio: float | None
    limit: float
    at_most: bool
    note: str = ""

    def verdict(self):
        if self.ratio is None:
            return self.note or "not measured"
        met = self.ratio <= self.limit if self.at_most else self.ratio >= self.limit
        return "met" if met else "MISSED"

    def cells(self):
        sign = "<=" if self.at_most else ">="
        ratio = "-" if self.ratio is None else number(self.ratio) + " x"
        return [self.what, self.measured, self.against, ratio, f"{sign} {self.limit:g} x", self.verdict()]


class Session:
    """The libraries, the samples so far, and what broke on the way."""

    def __init__(self, found, plain_dir, reps, quick):
        self.found, self.plain_dir, self.reps, self.quick = found, plain_dir, reps, quick
        self.samples, self.labels, self.broken = {}, {lib.name: lib.label for lib in found}, {}
        self.lines = {}
        self.progress = None

    def add(self, rep, name, key, value, line=None):
        self.samples.setdefault(key, {}).setdefault(name, {})[rep] = value
        self.lines[key, name, rep] = line

    def library(self, name):
        return next((lib for lib in self.found if lib.name == name), None)

    def middle(self, key, name="weft"):
        values = self.samples.get(key, {}).get(name)
        return median(values.values()) if values else None

    def best_peer(self, key, best):
        """The name, not the label, of the peer that is the best beside Weft; without Weft, the one with the best median."""
        peers = {n: median(v.values()) for n, v in self.samples.get(key, {}).items() if n not in ("weft", "plain")}
        ratios = {n: 1 / r for n in peers if (r := self.ratio(key, n))}
        return best(ratios or peers, key=(ratios or peers).get, default=None)

    def together(self, key, name, other_key, mine="weft"):
        """Pairs of repetitions of `mine` and `name`."""
        theirs = list(self.samples.get(other_key, {}).get(name, {}))
        for rep in self.samples.get(key, {}).get(mine, {}):
            line = self.lines.get((key, mine, rep))
            fit = [r for r in theirs if fits(line, self.lines.get((other_key, name, r)), rep == r)]
            if fit:
                other = min(fit, key=lambda r: 0 if r == rep else abs(r - rep))
                theirs.remove(other)
                yield rep, other

    def ratio(self, key, name, other_key=None, mine="weft"):
        """The median over the launches that belong together."""
        other_key = other_key or key
        both = [self.samples[key][mine][a] / self.samples[other_key][name][b]
                for a, b in self.together(key, name, other_key, mine)]
        return median(both) if both else None


def alike(a, b):
    """Whether two readings of a bare line are of one pace: those of one cache differ by less than two, two caches by more."""
    return max(a, b) <= 2 * min(a, b)


def fits(line, other, same_repetition):
    return same_repetition if line is None or other is None else alike(line, other)


def at_one_pace(record):
    """The median of a launch's windows that met its usual pace, and that pace; None for both where no window did."""
    samples, lines = record["samples"], record.get("line_ns")
    if not lines:
        return median(samples), None
    pace = median(lines)
    kept = [s for i, s in enumerate(samples) if alike(lines[i], pace) and alike(lines[i + 1], pace)]
    return (median(kept), pace) if kept else (None, None)


def amount(value, unit):
    return "-" if value is None else f"{number(value)} {unit}"


def show(session, rep, name, key, value, pace=None):
    at = "" if pace is None else f"  (line {number(pace)} ns)"
    shown = "its pace changed all the time" if value is None else number(value, 4) + at
    session.progress.say(f"  {rep + 1:2d}  {session.labels.get(name, 'plain C'):14s} {key:28s} {shown}")


def each_library(session, rep):
    """In another order each time, so that no library always runs in the wake of the same other one."""
    start = rep % len(session.found)
    return session.found[start:] + session.found[:start]


def by_bench(key, ranks, args, confine=False, timeout_s=60):
    """A measurement that one launch of weft-bench gives. Key and record name become the sample's name."""
    def run(session, rep):
        for library in each_library(session, rep):
            if f"{library.name}: {key}" in session.broken:
                continue  # it will not have healed, and a hang costs its whole limit each time
            session.progress.begin(f"{library.label}: {key}, {rep + 1} of {session.reps}")
            try:
                lines = runner.bench(library, ranks, args, timeout_s, set(runner.cpus()[:1]) if confine else None)
            except runner.Broken as why:
                session.broken[f"{library.name}: {key}"] = str(why)
                continue
            for line in lines:
                name = key if len(lines) == 1 else f"{key} {line['test']} {size_name(line['bytes'])}"
                value, pace = at_one_pace(line)
                if value is not None:
                    session.add(rep, library.name, name, value, pace)
                show(session, rep, library.name, name, value, pace)
    return run


def limits(session, rep):
    """The two-line ping-pong beside MPI's; all pairs of all repetitions are pooled for the median."""
    library = session.library("weft")
    if not library or "weft: limits" in session.broken:
        return
    pairs = 5 if session.quick else -(-210 // session.reps)
    session.progress.begin(f"Weft: limits, {rep + 1} of {session.reps}")
    try:
        lines = {line["test"]: line for line in runner.bench(library, 2, ["limits", "--pairs", pairs])}
    except runner.Broken as why:
        session.broken["weft: limits"] = str(why)
        return
    for key, line in lines.items():
        for i, value in enumerate(line["samples"]):
            session.add((rep, i), "weft", f"limits {key}", value)
        show(session, rep, "weft", f"limits {key} ({line['unit']})", median(line["samples"]))


def comparator(key, args, confine=False):
    def run(session, rep):
        session.progress.begin(f"plain C: {key}, {rep + 1} of {session.reps}")
        where = set(runner.cpus()[:1]) if confine else None
        line = runner.plain(session.plain_dir, args, confine=where)[0]
        session.add(rep, "plain", key, median(line["samples"]))
        show(session, rep, "plain", key, median(line["samples"]))
    return run


def startup(ranks):
    key = f"mpiexec -n {ranks} hello"

    def run(session, rep):
        for library in each_library(session, rep):
            if f"{library.name}: {key}" in session.broken:
                continue
            session.progress.begin(f"{library.label}: {key}, {rep + 1} of {session.reps}")
            try:
                value = runner.hello(library, ranks) * 1e3
            except runner.Broken as why:
                session.broken[f"{library.name}: {key}"] = str(why)
                continue
            session.add(rep, library.name, key, value)
            show(session, rep, library.name, key + " (ms)", value)
    return run


def against_best(session, what, key, unit, lower_is_better, limit, at_most):
    mine = session.middle(key)
    peer = session.best_peer(key, min if lower_is_better else max)
    ratio = session.ratio(key, peer)
    if ratio is None:
        return Row(what, amount(mine, unit), "-", None, limit, at_most,
                   "Weft not measured" if mine is None else "no peer measured")
    # "at most" compares costs (mine / theirs); "at least" compares merits, larger is better whatever the unit.
    return Row(what, amount(mine, unit), amount(session.middle(key, peer), f"{unit} ({session.labels[peer]})"),
               ratio if at_most or not lower_is_better else 1 / ratio, limit, at_most)


def against_key(session, what, key, other_key, unit, limit, other_name="weft", text=""):
    return Row(what, amount(session.middle(key), unit),
               amount(session.middle(other_key, other_name), f"{unit} {text}".strip()),
               session.ratio(key, other_name, other_key), limit, True)


def by_size(session, test, unit, lower_is_better):
    """A row for every size and one for the geometric mean from 64 KiB on; and the ratios of that mean."""
    rows, ratios = [], []
    size = LARGE[0]
    while size <= LARGE[1]:
        row = against_best(session, f"{test} {size_name(size)}", f"large {test} {test} {size_name(size)}", unit,
                           lower_is_better, 0.9, False)
        rows.append(row)
        if size >= MEAN_FROM and row.ratio is not None:
            ratios.append(row.ratio)
        size *= 2
    return rows + [mean_row(test, ratios)], ratios


def mean_row(what, ratios):
    mean = geometric_mean(ratios) if ratios else None
    return Row(f"{what} from 64 KiB, geometric mean", "", "best peer at each size", mean, 1.3, False)


def core_rows(s):
    ratio = s.middle("limits mpi / two lines")
    rows = [Row("8 B latency against two raw lines", amount(s.middle("limits mpi"), "ns"),
                amount(s.middle("limits two lines"), "ns"), ratio, 1.25, True)]
    rows.append(against_best(s, "8 B latency against the best peer", "latency 8 B", "us", True, 1.0, True))
    rows.append(against_best(s, "8 B message rate, window 64", "rate 8 B", "M/s", False, 2.0, False))
    latency, latency_ratios = by_size(s, "latency", "us", True)
    bandwidth, bandwidth_ratios = by_size(s, "bandwidth", "GB/s", False)
    rows += latency + bandwidth + [mean_row("both", latency_ratios + bandwidth_ratios)]
    rows.append(against_key(s, "ring of 8 ranks against sched_yield", "ring", "ring plain", "us/hop", 1.3,
                            other_name="plain", text="(plain C)"))
    return rows


def launcher_rows(s):
    rows = []
    for ranks in (2, 64):
        key = f"mpiexec -n {ranks} hello"
        if ranks == 2:
            rows.append(against_key(s, key + " against MPICH", key, key, "ms", 0.25, other_name="mpich"))
        else:
            rows.append(against_best(s, key + " against the best peer", key, "ms", True, 0.25, True))
    for ranks in (2, 8):
        key = f"PSS per rank, {ranks} ranks"
        mine = s.middle(key)
        peer = s.best_peer(key, min)
        rows.append(Row(key + ", of 3 MB", amount(mine, "MB"),
                        amount(s.middle(key, peer), f"MB ({s.labels.get(peer)})"),
                        mine / 3 if mine else None, 1, True))
    for kind in ("persistent", "mprobe"):
        rows.append(against_key(s, f"8 B latency, {kind} against plain", f"variants {kind} 8 B", "variants plain 8 B",
                                "us", 1.05))
    rows.append(against_key(s, "2 ranks on one CPU against sched_yield", "one CPU 8 B", "one CPU plain", "us", 1.5,
                            other_name="plain", text="(plain C)"))
    return rows


GROUPS = {
    "core": ([limits,
              by_bench("latency 8 B", 2, ["latency", "-m", "8:8"]),
              by_bench("rate 8 B", 2, ["rate"]),
              by_bench("large latency", 2, ["latency", "-m", f"{LARGE[0]}:{LARGE[1]}", "-r", 3]),
              by_bench("large bandwidth", 2, ["bandwidth", "-m", f"{LARGE[0]}:{LARGE[1]}", "-r", 3]),
              by_bench("ring", 8, ["ring", "--hops", 10000, "-r", 3]),
              comparator("ring plain", ["ring", "-n", 8, "--hops", 10000, "-r", 3])], core_rows),
    "launcher": ([startup(2), startup(64),
                  by_bench("PSS per rank, 2 ranks", 2, ["footprint"]),
                  by_bench("PSS per rank, 8 ranks", 8, ["footprint"]),
                  by_bench("variants", 2, ["variants", "-m", "8:8"]),
                  by_bench("one CPU 8 B", 2, ["latency", "-m", "8:8", "-r", 3, "-w", 2], confine=True),
                  comparator("one CPU plain", ["pingpong", "--hops", 10000, "-r", 3], confine=True)], launcher_rows),
}


def every_repetition(session):
    print("\nEvery repetition (one launch each, @ what a bare line took, ns; for the limits the pool of all pairs)")
    rows = []
    for key, by_name in session.samples.items():
        for name, by_rep in by_name.items():
            values = list(by_rep.values())
            paces = [session.lines.get((key, name, rep)) for rep in by_rep]
            each = [number(v) + ("" if p is None else f"@{p:.0f}") for v, p in zip(values, paces)]
            shown = " ".join(each) if len(values) <= 16 else f"n = {len(values)}"
            rows.append([key, session.labels.get(name, "plain C"), number(median(values)), spread(values), shown])
    print(table(["measurement", "library", "median", "range", "values"], rows, left=2))


def instruction_rows(root):
    """One row for each instruction budget, as `weft count` measures it."""
    script = libraries.SOURCES / "count" / "weft_count.py"
    if not script.exists():
        return [Row("instructions", "-", "-", None, 1, True, "weft count is not installed")]
    try:
        done = subprocess.run([sys.executable, str(script), "--root", str(root), "--json"], capture_output=True,
                              text=True, timeout=600)
        counted = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return [Row("instructions", "-", "-", None, 1, True, "weft count failed: run it for the reason")]
    return [Row(f"instructions: {c['what']}, {c['build']}", f"{c['count']:g}", f"budget {c['budget']:g}",
                c["count"] / c["budget"], 1, True) for c in counted["rows"] if c.get("budget")]


def run(root, groups, reps, only, quick, out):
    """Returns the exit status."""
    found, absent = libraries.discover(root, only)
    for name, why in absent.items():
        print(f"not in the comparison: {name}: {why}")
    if not found:
        print("weft bench: nothing to measure", file=sys.stderr)
        return 1
    about = machine.describe()
    print(machine.caption(about))
    for warning in machine.warnings(about):
        print("note: " + warning)
    session = Session(found, libraries.program_dir(pathlib.Path(root).resolve()), reps, quick)
    session.progress = Progress(reps * sum(len(GROUPS[g][0]) for g in groups))
    rows = []
    for group in groups:
        measurements, make_rows = GROUPS[group]
        session.progress.say(f"\n{group}: {reps} repetitions, interleaved")
        for rep in range(reps):
            for measurement in measurements:
                measurement(session, rep)
                session.progress.step()
        rows += make_rows(session)
    session.progress.clear()
    if "core" in groups:
        rows += instruction_rows(root)
    every_repetition(session)
    print("\nBars")
    print(table(["bar", "Weft", "against", "ratio", "limit", "verdict"], [r.cells() for r in rows]))
    missed = [r.what for r in rows if r.verdict() == "MISSED"]
    unmeasured = [r.what for r in rows if r.ratio is None]
    print(f"\n{len(rows) - len(missed) - len(unmeasured)} met, {len(missed)} missed, {len(unmeasured)} not measured")
    for what, why in session.broken.items():
        print(f"broken: {what}: {why}")
    if out:
        pathlib.Path(out).write_text(json.dumps({
            "machine": about, "samples": {k: {n: list(v.values()) for n, v in by_name.items()}
                                          for k, by_name in session.samples.items()}, "broken": session.broken,
            "bars": [{"what": r.what, "weft": r.measured, "against": r.against, "ratio": r.ratio, "limit": r.limit,
                      "verdict": r.verdict()} for r in rows]}, indent=1), encoding="utf-8")
    return 1 if any(name.startswith("weft:") for name in session.broken) or "weft" in absent else 0
