"""Latency, bandwidth and message rate from 1 B to 4 MiB, two ranks, every library in turn."""
from . import runner
from .text import median

TESTS = ("latency", "bandwidth")  # the rate of a window is its bandwidth in messages


def measure(libraries, reps, sizes, progress, window_ms=3, samples=2):
    """{library: {test: {bytes: [one value per repetition]}}}; a library that fails is left out, with the reason."""
    data, broken = {}, {}
    working = list(libraries)
    for rep in range(reps):
        for library in working[rep % len(working):] + working[:rep % len(working)]:
            for test in TESTS:
                progress.begin(f"{library.label}: {test}, {rep + 1} of {reps}")
                progress.step()
                if library.name in broken:
                    continue
                try:
                    lines = runner.bench(library, 2, [test, "-m", f"{sizes[0]}:{sizes[1]}", "-r", samples,
                                                      "-t", window_ms, "-w", window_ms])
                except runner.Broken as why:
                    broken[library.name] = str(why)
                    continue
                by_size = data.setdefault(library.name, {}).setdefault(test, {})
                for line in lines:
                    by_size.setdefault(line["bytes"], []).append(median(line["samples"]))
    for name in broken:
        data.pop(name, None)
    for tests in data.values():
        tests["rate"] = {size: [v * 1e3 / size for v in values] for size, values in tests["bandwidth"].items()}
    return data, broken
