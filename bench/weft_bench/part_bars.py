"""The bars of partitioned communication (`weft bench bars --group part`), measured by weft-bench-part."""
from . import runner
from .rows import Row, against_best, against_number, amount
from .session import Measurement, each_library, show
from .text import median, size_name

STYLES = ("single", "multiple", "partitioned")
LARGE = [1 << i for i in range(16, 23)]                # one partition, from 64 KiB on
SMALL = [16, 128]                                      # 16 partitions of 1 and 8 B
EARLY = [1 << 16, 1 << 18, 1 << 20]
PATTERNS = (("sweep3d", 4, 16), ("halo3d", 8, 8))      # ranks, threads
PATTERN_SIZES = [1 << 16, 1 << 20]
MARKED = ["overhead", "--threads", 1, "--compute-time", 0, "--iterations", 100]  # one thread marks all, back to back
EARLY_WORK = ["--threads", 8, "--compute-time", 100, "--percent-noise", 4, "--iterations", 10, "--warmup", 1]
PATTERN_WORK = ["--compute-time", 10, "--percent-noise", 4, "--noise-type", "single", "--iterations", 3, "--warmup", 1]


def by_part(key, ranks, args, sizes, values):
    """A measurement of weft-bench-part at each of these sizes; a sample is named by key, value and size."""
    def run(session, rep):
        def measure(library):
            for size in sizes:
                lines = runner.bench(library, ranks, [*args, "--message-size", size, "--seed", rep + 1], 60, program="weft-bench-part")
                record = next(line for line in lines if "samples" in line)
                for value in values:
                    name = f"{key} {value} {size_name(size)}"
                    defined = [v for v in record["samples"][value] if v is not None]
                    if defined:
                        session.add(rep, library.name, name, median(defined))
                        show(session, rep, library.name, name, median(defined))
        each_library(session, rep, key, measure)
    return Measurement(key, run)


def pattern_key(pattern, style):
    return f"part {pattern} {style}"


MEASUREMENTS = [by_part("part one", 2, MARKED, LARGE, ["overhead"]),
                by_part("part marked", 2, [*MARKED, "--partitions", 16], [*SMALL, 1 << 20], ["overhead"]),
                by_part("part threads", 2, ["overhead", "--threads", 16, "--compute-time", 0, "--iterations", 50], [1 << 20], ["overhead"]),
                by_part("part early", 2, ["early_bird", *EARLY_WORK], EARLY, ["early_bird", "early_bird_span", "early_bird_partitions"]),
                *(by_part(pattern_key(pattern, style), ranks, [pattern, "--threads", threads, "--style", style, *PATTERN_WORK],
                          PATTERN_SIZES, ["communication_us"])
                  for pattern, ranks, threads in PATTERNS for style in STYLES)]


def at_least(s, what, key, limit):
    """Weft's own value, with the best peer's beside it."""
    peers = {name: value for name in s.labels if name != "weft" and (value := s.middle(key, name)) is not None}
    peer = max(peers, key=peers.get, default=None)  # not by ratios: a share may be 0
    return Row(what, amount(s.middle(key), ""), amount(peers.get(peer), s.labels.get(peer, "")),
               dict(s.samples.get(key, {}).get("weft", {})), limit, False)


def against_styles(s, pattern, size):
    """Communication time of the partitioned style by that of the best other style of any library."""
    what, end = f"{pattern}, {size_name(size)}: communication, partitioned against the best other", f"communication_us {size_name(size)}"
    mine = f"{pattern_key(pattern, 'partitioned')} {end}"
    others = {(f"{pattern_key(pattern, style)} {end}", name): s.middle(f"{pattern_key(pattern, style)} {end}", name)
              for style in STYLES for name in s.labels if (style, name) != ("partitioned", "weft")}
    for style in STYLES:
        s.middle(f"{pattern_key(pattern, style)} {end}")
    here = {key: value for key, value in others.items() if value is not None}
    if not here:
        return Row(what, amount(s.middle(mine), "us"), "-", {}, 1, note="nothing to compare with")
    key, name = min(here, key=here.get)
    style = key.split()[2]
    return Row(what, amount(s.middle(mine), "us"), amount(here[key, name], f"us ({s.labels[name]}, {style})"),
               s.ratios(mine, name, key), 1)


def rows(s):
    one = [against_number(s, f"overhead of one partition, {size_name(size)}", f"part one overhead {size_name(size)}", "x", 1, 1.02, "1")
           for size in LARGE]
    marked = "part marked overhead"
    more = [against_number(s, "overhead of 16 partitions, 1 MiB", f"{marked} 1 MiB", "x", 1, 1.10, "1"),
            against_number(s, "overhead of 16 partitions by 16 threads, 1 MiB", "part threads overhead 1 MiB", "x", 1, None, "1")]
    for size in SMALL:
        key, what = f"{marked} {size_name(size)}", f"overhead of 16 partitions of {size // 16} B"
        more += [against_number(s, what, key, "x", 1, 4, "1"), against_best(s, f"{what} against the best peer", key, "x", True, 0.5, True)]
    for size in EARLY:
        for value, limit in (("early_bird", 0.85), ("early_bird_span", None), ("early_bird_partitions", 0.85)):
            more.append(at_least(s, f"{value.replace('_', '-')}, 8 threads, 100 ms, 4 %, {size_name(size)}",
                                 f"part early {value} {size_name(size)}", limit))
    return one + more + [against_styles(s, pattern, size) for pattern, _, _ in PATTERNS for size in PATTERN_SIZES]
