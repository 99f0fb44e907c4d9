"""Interleaved repetitions, and the ratios of what belongs together, with their interval."""
import hashlib
import json
import statistics
import time
from collections import defaultdict

from .base import RATES, Failed
from weft_bench.interval import median_interval
from weft_bench.text import number, table


def identity(library):
    """Marks the measured build: samples of different builds are never compared."""
    return hashlib.sha256((library.lib / "libmpi_abi.so.1").read_bytes()).hexdigest()[:12]


def measure(timings, libraries, ranks, state, repetitions, until, record):
    """Appends the samples of some repetitions to the file `record`; each launches every library, in an order that rotates."""
    weft = identity(libraries[0])
    for repetition in range(repetitions):
        for timing in timings:
            if time.monotonic() > until:
                print("out of time: the rest of the repetitions is left to another call", flush=True)
                return
            key = f"{time.time():.3f}"
            turn = repetition % len(libraries)
            lines = []
            for library in libraries[turn:] + libraries[:turn]:
                for row, (value, unit) in timing.measure(library, ranks).items():
                    lines.append({"weft": weft, "state": state, "ranks": ranks, "row": row, "unit": unit, "turn": key,
                                  "library": library.name, "value": value})
            with open(record, "a") as out:
                out.writelines(json.dumps(line) + "\n" for line in lines)
            shown = defaultdict(list)
            for line in lines:
                shown[line["row"], line["unit"]].append(f"{line['library']} {number(line['value'])}")
            for (row, unit), values in shown.items():
                print(f"  {state}, {row} ({unit}): {', '.join(sorted(values))}", flush=True)


def judge(record, ours, others):
    """The table of ratios of `ours`' time to the best of the others'. 1 where a row is slower: where all of the interval is above 1."""
    if not record.exists():
        raise Failed(f"nothing was measured yet: {record}")
    turns = defaultdict(lambda: defaultdict(dict))  # row -> turn -> library -> value
    for line in map(json.loads, record.read_text().splitlines()):
        if line["weft"] == identity(ours):
            row = (line["state"], line["ranks"], line["row"], line["unit"])
            turns[row][line["turn"]][line["library"]] = line["value"]
    rows, status = [], 0
    labels = {library.name: library.label for library in others}
    for (state, ranks, name, unit), samples in sorted(turns.items(), key=lambda item: item[0][0], reverse=True):
        whole = [t for t in samples.values() if all(p in t for p in (ours.name, *labels))]
        if not whole:
            continue
        middle = {p: statistics.median(t[p] for t in whole) for p in (ours.name, *labels)}
        rate = unit in RATES
        best = (max if rate else min)(labels, key=middle.get)
        # A rate is turned around: more is always slower.
        ratios = [t[best] / t[ours.name] if rate else t[ours.name] / t[best] for t in whole]
        between = median_interval(ratios)
        verdict = ("not decided" if not between else "slower" if between[0] > 1 else "faster" if between[1] < 1 else "level")
        status |= verdict == "slower"
        rows.append([f"{name} ({unit})", state, ranks, len(whole), *(number(middle[p]) for p in (ours.name, *labels)), labels[best],
                     f"{statistics.median(ratios):.3f}", "{:.3f}..{:.3f}".format(*between) if between else "-", verdict])
    head = ["program", "CPUs", "ranks", "n", ours.label, *labels.values(), "beside", "ratio of times", "95 %", f"{ours.label} is"]
    print(table(head, rows, left=2), flush=True)
    return int(status)
