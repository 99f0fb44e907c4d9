"""`weft bench part`: partitioned communication by four metrics and two patterns, every library in turn.

A case is a number of threads, and for patterns a style. Each repetition is one launch of each library for each case; what is
printed is the median with its 95 % interval, and beside it what the calibration said of the machine's jitter.
"""
import csv
import json
import pathlib
from dataclasses import dataclass

from . import libraries, machine, picture, runner
from .part_stats import kept_iterations, summarize
from .interval import median_interval
from .session import Session, each_library
from .text import Progress, median, number, size_name, table

METRICS = ("overhead", "perceived_bandwidth", "availability", "early_bird", "metrics")
PATTERNS = ("sweep3d", "halo3d")
STYLES = ("single", "multiple", "partitioned")
# What each test prints: sample, heading, unit.
SHOWN = {
    "overhead": [("overhead", "overhead, union of intervals", "x"), ("overhead_span", "overhead, first ready to last arrival", "x")],
    "perceived_bandwidth": [("bandwidth_MBps", "perceived bandwidth", "MB/s"),
                            ("bandwidth_corrected_MBps", "perceived bandwidth, without the acknowledgement", "MB/s")],
    "availability": [("availability", "application availability, paired join", "share of 1"),
                     ("availability_mean_join", "application availability, mean join", "share of 1")],
    "early_bird": [("early_bird", "early-bird communication, union, paired join", "share of 1"),
                   ("early_bird_span", "early-bird communication, span, paired join", "share of 1"),
                   ("early_bird_mean_join", "early-bird communication, union, mean join", "share of 1"),
                   ("early_bird_partitions", "partitions that arrived before the join", "share of 1")],
    "jitter": [("late_median_us", "threads wake late", "us"), ("late_max_us", "at worst", "us"), ("region_us", "region", "us")],
}
SHOWN["metrics"] = [SHOWN[test][0] for test in METRICS[:4]] + SHOWN["early_bird"][3:]
for pattern in PATTERNS:
    SHOWN[pattern] = [("time_us", "time of an iteration", "us"),
                      ("communication_us", "time of an iteration beyond that without communication", "us"),
                      ("KBps_per_rank", "true bytes", "KB/s for each rank")]
PRUNED_BY = ("plain_us", "union_us", "time_us")  # whichever of them a test has
TESTS = (*METRICS, *PATTERNS, "jitter")


@dataclass(frozen=True)
class Case:
    threads: int
    style: str = ""

    def __str__(self):
        return f"{self.threads} threads" + (f", {self.style}" if self.style else "")

    def arguments(self):
        return ["--threads", self.threads, *(["--style", self.style] if self.style else [])]


class Results:
    """What was measured: settings and calibration by (library, case), records by (case, bytes), library and repetition."""

    def __init__(self, found, limit):
        self.limit, self.dropped, self.all = limit, 0, 0
        self.names = [lib.name for lib in found]
        self.labels = {lib.name: lib.label for lib in found}
        self.settings, self.records, self.clamped = {}, {}, 0

    def add(self, rep, name, case, lines):
        for line in lines:
            if line["test"] == "settings":
                self.settings.setdefault((name, case), []).append(line)
            elif line["test"] == "clamped":
                self.clamped += line["draws"]
            elif line["test"] != "trace":
                self.records.setdefault((case, line["bytes"]), {}).setdefault(name, {})[rep] = line
                line["kept"] = list(kept_iterations(line["samples"], PRUNED_BY, self.limit))
                self.all += len(next(iter(line["samples"].values())))
                self.dropped += len(next(iter(line["samples"].values()))) - len(line["kept"])

    def cases(self):
        return list(dict.fromkeys(case for case, _ in self.records))

    def sizes(self, case):
        return [size for c, size in self.records if c == case]

    def launches(self, case, size, name, value):
        """The samples of each launch, without iterations that were pruned."""
        return [[line["samples"][value][i] for i in line["kept"]] for line in self.records.get((case, size), {}).get(name, {}).values()]

    def jitter(self, name, case):
        told = [settings["jitter"] for settings in self.settings.get((name, case), [])]
        return None if not told else (median([j["late_median_us"] for j in told]), max(j["late_max_us"] for j in told))


def print_jitter(results, case):
    settings = next((results.settings[name, case][0] for name in results.names if (name, case) in results.settings), None)
    if not settings:
        return
    told = [f"{results.labels[name]} {number(j[0])} ({number(j[1])})" for name in results.names if (j := results.jitter(name, case))]
    print(f"compute={settings['compute']} {settings['compute_ms']:g} ms, {settings['noise']} noise {settings['percent_noise']:g} %, "
          f"{settings['cache']} cache, arrival={settings['arrival']}, receiver={settings['receiver']}, ready={settings['ready']}, "
          f"poll={settings['poll']}, seed {settings['seed']}")
    print("jitter, us late in the median (at worst): " + ", ".join(told))


def print_metric(results, case, value, heading, unit):
    counts, rows = {}, []
    for size in results.sizes(case):
        summaries = [summarize(results.launches(case, size, name, value)) for name in results.names]
        rows.append([size_name(size), *(str(s) if s else "-" for s in summaries)])
        for s in filter(None, summaries):
            counts.setdefault(s.counted, []).append(s.n)
    counted = ", ".join(f"n = {min(n)}{f' to {max(n)}' if max(n) > min(n) else ''} {what}" for what, n in counts.items())
    print(f"\n{heading} ({unit}), {case}: median (95 % interval), {counted}")
    print(table(["size", *(results.labels[n] for n in results.names)], rows))


def print_means(results, case):
    """The paper's form of the overhead: a quotient of means."""
    rows = []
    for size in results.sizes(case):
        both = [[summarize(results.launches(case, size, name, value)) for value in ("union_us", "plain_us")] for name in results.names]
        rows.append([size_name(size), *(number(part.mean / plain.mean) if part and plain else "-" for part, plain in both)])
    print(f"\noverhead, quotient of means (x), {case}")
    print(table(["size", *(results.labels[n] for n in results.names)], rows))


def print_volumes(results, case):
    rows = []
    for size in results.sizes(case):
        line = next(iter(next(iter(results.records[case, size].values())).values()))
        rows.append([size_name(size), line["bytes_with_neighbour"], line["nominal_bytes_with_neighbour"], line["bytes_of_busiest_rank"],
                     line["bytes_of_all"]])
    print(f"\ntrue bytes of an iteration, {case}")
    print(table(["size", "with a neighbour", "nominally", "of the busiest rank", "of all"], rows))


def compare_styles(results):
    """Weft's partitioned style beside the best other style of any library, by communication time; ratios within repetitions."""
    rows = []
    mine = [case for case in results.cases() if case.style == "partitioned"]
    for case in mine:
        others = [other for other in results.cases() if other.threads == case.threads or other.style == "single"]
        for size in results.sizes(case):
            weft = by_rep(results, case, size, "weft")
            rest = {(other, name): by_rep(results, other, size, name) for other in others for name in results.names
                    if (other, name) != (case, "weft") and not (other.style == "partitioned" and name == "weft")}
            rest = {key: values for key, values in rest.items() if set(values) & set(weft)}
            if not rest:
                continue
            best = min(rest, key=lambda key: median(rest[key].values()))
            ratios = [weft[rep] / rest[best][rep] for rep in weft if rep in rest[best]]
            interval = median_interval(ratios)
            rows.append([size_name(size), str(case), f"{results.labels[best[1]]}, {best[0]}", number(median(ratios)),
                         f"{number(interval[0])}..{number(interval[1])}" if interval else "-", len(ratios)])
    if rows:
        print("\ncommunication time of Weft's partitioned style by that of the best other style of any library")
        print(table(["size", "Weft", "best other", "ratio", "95 % interval", "n"], rows, left=3))


def by_rep(results, case, size, name):
    reps = results.records.get((case, size), {}).get(name, {})
    return dict(zip(reps, map(median, results.launches(case, size, name, "communication_us"))))


def print_results(results, test):
    for case in results.cases():
        print(f"\n== {test}, {case}")
        print_jitter(results, case)
        if test in PATTERNS:
            print_volumes(results, case)
        for value, heading, unit in SHOWN[test]:
            print_metric(results, case, value, heading, unit)
        if test in ("overhead", "metrics"):
            print_means(results, case)
    if test in PATTERNS:
        compare_styles(results)
    if results.limit is not None:
        print(f"\n{results.dropped} of {results.all} iterations pruned: a time above median + {results.limit:g} x MAD of its launch")
    if results.clamped:
        print(f"\n{results.clamped} negative draws of compute time became 0")


def summary_records(results):
    """Every value of every record, with what summarize() says of it."""
    for (case, size), by_name in results.records.items():
        for name, lines in by_name.items():
            for value in next(iter(lines.values()))["samples"]:
                if s := summarize(results.launches(case, size, name, value)):
                    yield {"library": name, "threads": case.threads, "style": case.style, "bytes": size, "value": value,
                           "median": s.median, "mean": s.mean, "interval": s.interval, "n": s.n, "counted": s.counted,
                           "undefined": s.undefined}


def write_csv(results, path):
    """Every sample, also of iterations that were pruned, and whether they were."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["library", "launch", "threads", "partitions", "style", "bytes", "iteration", "value", "sample", "kept"])
        for (case, size), by_name in results.records.items():
            for name, lines in by_name.items():
                for rep, line in lines.items():
                    for value, samples in line["samples"].items():
                        out.writerows([name, rep, case.threads, line["partitions"], case.style, size, i, value, sample,
                                       int(i in line["kept"])] for i, sample in enumerate(samples))


def as_json(results, test, about):
    panels = []
    for value, heading, unit in SHOWN[test]:
        lines = [{"library": name, "label": f"{results.labels[name]}, {case}", "dash": at,
                  "points": [[size, [s.interval[0], s.median, s.interval[1]] if s.interval else [s.median]]
                             for size in results.sizes(case) if (s := summarize(results.launches(case, size, name, value)))]}
                 for at, case in enumerate(results.cases()) for name in results.names]
        panels.append({"title": f"{heading} ({unit})", "log": not value.startswith(("availability", "early")),
                       "lines": [line for line in lines if line["points"]]})
    return {"kind": "part", "machine": about, "caption": machine.caption(about), "title": f"Partitioned communication: {test}",
            "prune": results.limit, "dropped": results.dropped,
            "settings": [{"library": name, **line} for (name, _), lines in results.settings.items() for line in lines],
            "summary": list(summary_records(results)), "panels": panels,
            "records": [{"library": name, "launch": rep, "style": case.style, **line} for (case, _), by_name in results.records.items()
                        for name, lines in by_name.items() for rep, line in lines.items()]}


def write_files(results, args, about):
    if args.csv:
        write_csv(results, args.csv)
    data = args.json or (str(pathlib.Path(args.plot).with_suffix(".json")) if args.plot else None)
    if data:
        with open(data, "w", encoding="utf-8") as file:
            json.dump(as_json(results, args.test, about), file)
    if args.plot:
        print("\n" + picture.save(data, args.plot))


def measure(session, results, args):
    cases = [Case(threads, style) for threads in args.threads for style in (args.styles if args.test in PATTERNS else [""])
             if style != "single" or threads == args.threads[0]]  # one thread is one thread
    session.progress = Progress(args.reps * len(cases))
    for rep in range(args.reps):
        for case in cases:
            def launch(library, case=case, rep=rep):
                lines = runner.bench(library, args.n, [args.test, "--seed", rep + 1, *case.arguments(), *args.options], args.timeout,
                                     program="weft-bench-part")
                results.add(rep, library.name, case, lines)
            each_library(session, rep, f"{args.test}, {case}", launch)
            session.progress.step()
    session.progress.clear()


def run(args):
    """Returns the exit status."""
    found = libraries.compared(args.root, args.only, "weft-bench-part")  # not built where the compiler lacks OpenMP
    about = machine.describe()
    print(machine.caption(about))
    session, results = Session(found, libraries.program_dir(pathlib.Path(args.root).resolve()), args.reps), Results(found, args.prune)
    measure(session, results, args)
    print_results(results, args.test)
    write_files(results, args, about)
    for what, why in session.broken.items():
        print(f"broken: {what}: {why}")
    return 1 if any(name.startswith("weft:") for name in session.broken) else 0
