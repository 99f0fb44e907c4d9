"""`weft bench busy`: the busy tests under one condition after another, every library in turn.

A condition is a number of ranks, of hogs on each CPU, of jobs side by side, and a share of CPU time. Everything runs on
the first few CPUs only, the launchers too, so that nobody finds an idle one.
"""
import contextlib
import itertools
import pathlib
import sys
from dataclasses import dataclass

from . import beside, libraries, machine, runner
from .bars import BUSY, BUSY_NAMES
from .session import Session, each_library
from .rows import against_best
from .text import Progress, number, size_name, spread, table


@dataclass(frozen=True)
class Condition:
    ranks: int
    hogs: int
    nice: int
    jobs: int
    quota: int  # percent of the CPUs' time, 0 for all
    apart: bool = False  # the hogs in scheduling groups of their own

    def __str__(self):
        hogs = f"{self.hogs} hog{'s' * (self.hogs > 1)} on each CPU" if self.hogs else "no hogs"
        parts = [f"{self.ranks} ranks", hogs]
        if self.hogs and self.apart:
            parts.append("in groups of their own")
        if self.hogs and self.nice:
            parts.append(f"nice {self.nice}")
        if self.jobs > 1:
            parts.append("two jobs side by side")
        if self.quota:
            parts.append(f"a quota of {self.quota} %")
        return ", ".join(parts)


def one_launch(session, rep, condition, test, where, window_ms):
    """A launch of every library; samples are named by condition and record."""
    key = f"{condition}"

    def measure(library, cgroup=None):
        args = [test, "-r", 1, "-t", window_ms, "-w", window_ms / 6]
        companion = beside.second_job(library, condition.ranks, args, set(where), cgroup) if condition.jobs > 1 else \
            contextlib.nullcontext()
        with companion:
            lines = runner.bench(library, condition.ranks, args, 300, set(where), cgroup)
        for line in lines:
            session.add(rep, library.name, f"{key}: {line['test']} {size_name(line['bytes'])}", line["samples"][0])
    with contextlib.ExitStack() as around:
        if condition.quota:  # of the job alone
            cgroup = around.enter_context(beside.group(condition.quota, len(where)))
        else:
            cgroup = None if condition.apart else around.enter_context(beside.common_group())
        if condition.hogs:
            beside_it = None if condition.apart or condition.quota else cgroup
            around.enter_context(beside.hogs(session.plain_dir, where, condition.hogs, condition.nice, beside_it))
        each_library(session, rep, f"{key}: {test}", lambda library: measure(library, cgroup))


def print_condition(session, condition):
    names = [lib.name for lib in session.found]
    rows = []
    for test, size, unit in BUSY:
        key = f"{condition}: {test} {size_name(size)}"
        by_name = session.samples.get(key)
        if not by_name:
            continue
        cells = [f"{number(session.middle(key, n))} ({spread(by_name[n].values())})" if n in by_name else "-"
                 for n in names]
        row = against_best(session, "", key, unit, True, None, False)
        interval = row.interval() if row.ratio else None
        ratio = "-" if not row.ratio else number(row.ratio) + " x"
        rows.append([BUSY_NAMES[test], unit, *cells,
                     ratio + (f" ({number(interval[0])}..{number(interval[1])})" if interval else "")])
    print(f"\n{condition}")
    print(table(["test", "unit", *(session.labels[n] for n in names), "best peer / Weft"], rows, left=2))


def run(root, only, conditions, tests, reps, cpus, window_ms):
    """Returns the exit status."""
    found = libraries.compared(root, only)
    about, where = machine.describe(), runner.cpus()[:cpus]
    print(machine.caption(about))
    print(f"on CPUs {where}; {machine.autogroup()}; median (range) of n = {reps} launches, "
          f"each the mean of {window_ms:g} ms")
    session = Session(found, libraries.program_dir(pathlib.Path(root).resolve()), reps)
    session.progress = Progress(reps * len(conditions) * len(tests))
    try:
        for condition in conditions:
            for rep, test in itertools.product(range(reps), tests):
                one_launch(session, rep, condition, test, where, window_ms)
                session.progress.step()
            session.progress.clear()
            print_condition(session, condition)
            sys.stdout.flush()
    except beside.Refused as why:
        print(f"weft bench: {why}", file=sys.stderr)
        return 1
    for what, why in session.broken.items():
        print(f"broken: {what}: {why}")
    return 1 if any(name.startswith("weft:") for name in session.broken) else 0
