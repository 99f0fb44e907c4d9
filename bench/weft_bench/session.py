"""What was measured so far, which launches belong together, and the measurements that fill it.

One repetition is one launch of every library; its value is the median of the windows inside that launch. A virtual machine may
move its CPUs between one cache and two within seconds, which is worth a factor of three; so the program reads what a bare cache
line takes before and after each window, and launches belong together which met the same pace, the nearest in time first. Where
the program does not tell, those of one repetition belong together.
"""
import itertools
from dataclasses import dataclass
from typing import Callable

from . import beside, runner
from .text import median, number, size_name


class Session:
    """The libraries, the samples so far, and what broke on the way."""

    def __init__(self, found, plain_dir, reps):
        self.found, self.plain_dir, self.reps = found, plain_dir, reps
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

    def ratios(self, key, name, other_key=None, mine="weft"):
        """The ratio of each pair of launches that belong together, by the repetition of `mine`."""
        other_key = other_key or key
        return {a: self.samples[key][mine][a] / self.samples[other_key][name][b]
                for a, b in self.together(key, name, other_key, mine)}

    def ratio(self, key, name, other_key=None, mine="weft"):
        both = self.ratios(key, name, other_key, mine)
        return median(both.values()) if both else None

    def turn(self, rep):
        """The libraries in another order each time, so that none always runs in the wake of the same other one."""
        start = rep % len(self.found)
        return self.found[start:] + self.found[:start]


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


@dataclass
class Measurement:
    key: str
    run: Callable  # (session, repetition)


def show(session, rep, name, key, value, pace=None):
    at = "" if pace is None else f"  (line {number(pace)} ns)"
    shown = "its pace changed all the time" if value is None else number(value, 4) + at
    session.progress.say(f"  {rep + 1:2d}  {session.labels.get(name, 'plain C'):14s} {key:28s} {shown}")


def each_library(session, rep, key, measure):
    """Calls measure(library), which may break; what broke once will not have healed, and a hang costs its limit each time."""
    for library in session.turn(rep):
        if f"{library.name}: {key}" in session.broken:
            continue
        session.progress.begin(f"{library.label}: {key}, {rep + 1} of {session.reps}")
        try:
            measure(library)
        except runner.Broken as why:
            session.broken[f"{library.name}: {key}"] = str(why)


def by_bench(key, ranks, args, cpus=None, hogs=0, timeout_s=60, settings=None, shown=True):
    """A measurement that one launch of weft-bench gives; on the first `cpus` CPUs alone, with so many hogs on each, in the
    same control group where that can be had. Key and record name become the sample's name. `settings` are variables of
    each library beside its defaults; where given, libraries that it does not name are left out."""
    def run(session, rep):
        where = runner.cpus()[:cpus]

        def measure(library, cgroup=None):
            if settings is not None and library.name not in settings:
                return
            env = settings[library.name] if settings else None
            lines = runner.bench(library, ranks, args, timeout_s, set(where) if cpus else None, cgroup, env)
            for line in lines:
                name = key if len(lines) == 1 else f"{key} {line['test']} {size_name(line['bytes'])}"
                value, pace = at_one_pace(line)
                if value is not None:
                    session.add(rep, library.name, name, value, pace)
                if shown:
                    show(session, rep, library.name, name, value, pace)
        if not hogs:
            return each_library(session, rep, key, measure)
        with beside.common_group() as cgroup, beside.hogs(session.plain_dir, where, hogs, cgroup=cgroup):
            each_library(session, rep, key, lambda library: measure(library, cgroup))
    return Measurement(key, run)


def ours(key, ranks, args, env=None, timeout_s=120, **more):
    """What only Weft is asked, with these variables. More arguments are runner.bench()'s."""
    def run(session, rep):
        def measure(library):
            if library.name != "weft":
                return
            for line in runner.bench(library, ranks, args, timeout_s, env=env, **more):
                value, pace = at_one_pace(line)
                if value is not None:
                    session.add(rep, "weft", f"{key} {line['test']}", value, pace)
                show(session, rep, "weft", f"{key} {line['test']} ({line['unit']})", value, pace)
        each_library(session, rep, key, measure)
    return Measurement(key, run)


def alternating(key, ranks, kinds, turns):
    """Weft alone in several kinds, (name, arguments), each `turns` times in a repetition, in turn; every launch counts."""
    def run(session, rep):
        def measure(library):
            if library.name != "weft":
                return
            for turn, (name, args) in itertools.product(range(turns), kinds):
                for line in runner.bench(library, ranks, args):
                    value, pace = at_one_pace(line)
                    if value is not None:
                        session.add(rep * turns + turn, "weft", f"{key} {name} {line['test']}", value, pace)
                    show(session, rep, "weft", f"{key} {name} {line['test']} ({line['unit']})", value, pace)
        each_library(session, rep, key, measure)
    return Measurement(key, run)


def comparator(key, args, cpus=None):
    """The same without MPI."""
    def run(session, rep):
        session.progress.begin(f"plain C: {key}, {rep + 1} of {session.reps}")
        line = runner.plain(session.plain_dir, args, confine=set(runner.cpus()[:cpus]) if cpus else None)[0]
        session.add(rep, "plain", key, median(line["samples"]))
        show(session, rep, "plain", key, median(line["samples"]))
    return Measurement(key, run)


def comparators(key, args, program):
    """The same with every record of another program without MPI, by test and size."""
    def run(session, rep):
        session.progress.begin(f"plain C: {key}, {rep + 1} of {session.reps}")
        for line in runner.plain(session.plain_dir, args, program=program):
            name = f"{key} {line['test']} {size_name(line['bytes'])}"
            session.add(rep, "plain", name, median(line["samples"]))
            show(session, rep, "plain", name, median(line["samples"]))
    return Measurement(key, run)


def startup(ranks):
    key = f"mpiexec -n {ranks} hello"

    def run(session, rep):
        def measure(library):
            value = runner.hello(library, ranks) * 1e3
            session.add(rep, library.name, key, value)
            show(session, rep, library.name, key + " (ms)", value)
        each_library(session, rep, key, measure)
    return Measurement(key, run)
