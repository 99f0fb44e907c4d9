"""What `weft tune --heap` compares and how it decides: the ways of a message in the shared heap, by size.

A size goes eagerly, by the receiver's copy alone, or by both sides' in blocks of some least size. The best way is the one with the
least mean of logarithms over latency and windows; the thresholds are the sizes from which on a way stays the best.
"""
import math
from dataclasses import dataclass

from .interval import median_interval
from .text import median, number, size_name

SIZES = [1 << n for n in range(11, 18)]   # 2 to 128 KiB
BLOCKS = (4 << 10, 8 << 10, 16 << 10)
SHIPPED = {"WEFT_MAPPED_MIN": 8 << 10, "WEFT_MAPPED_BOTH": 16 << 10, "WEFT_MAPPED_BLOCK": 8 << 10}
LEAST, NEVER = 1 << 10, 1 << 40


@dataclass(frozen=True)
class Way:
    name: str
    copies: bool          # from where it lies, from the smallest size on
    block: int = 0        # both sides, in blocks of at least so many bytes; 0: the receiver alone

    def variables(self):
        if not self.copies:
            return {"WEFT_MAPPED": "off"}
        both = {"WEFT_MAPPED_BOTH": str(LEAST if self.block else NEVER)}
        return {"WEFT_MAPPED_MIN": str(LEAST), **both, **({"WEFT_MAPPED_BLOCK": str(self.block)} if self.block else {})}


EAGER, RECEIVER = Way("eager", False), Way("receiver", True)


def candidates():
    return [EAGER, RECEIVER, *(Way(f"both, {size_name(block)}", True, block) for block in BLOCKS)]


def cost(samples, way, size, rep):
    """The mean logarithm of both tests' values; None where one is missing."""
    values = [by_rep.get(rep) for (w, _, s), by_rep in samples.items() if w == way and s == size]
    return sum(map(math.log, values)) / len(values) if values and all(values) else None


def ratios(samples, way, other, sizes):
    """Of `way`'s time to the other's, over these sizes, one for each repetition."""
    found = []
    for rep in sorted({rep for by_rep in samples.values() for rep in by_rep}):
        pairs = [(cost(samples, way, size, rep), cost(samples, other, size, rep)) for size in sizes]
        if pairs and all(a is not None and b is not None for a, b in pairs):
            found.append(math.exp(sum(a - b for a, b in pairs) / len(pairs)))
    return found


def is_faster(samples, way, other, sizes):
    between = median_interval(ratios(samples, way, other, sizes))
    return between is not None and between[1] < 1


def start_of(samples, way, other, shipped):
    """The size from which on `way` replaces `other`: the shipped one, moved down or up while the measurement says so."""
    start = shipped
    while start > SIZES[0] and is_faster(samples, way, other, [start // 2]):
        start //= 2
    if start < shipped:
        return start
    while start <= SIZES[-1] and is_faster(samples, other, way, [start]):
        start *= 2
    return start


def choose(samples):
    """{variable: bytes}: the shipped value where nothing is surely faster."""
    by_block = {way.block: way for way, _, _ in samples if way.block}
    shipped = by_block[SHIPPED["WEFT_MAPPED_BLOCK"]]
    large = [size for size in SIZES if size >= SHIPPED["WEFT_MAPPED_BOTH"]]
    faster = [way for way in by_block.values() if way != shipped and is_faster(samples, way, shipped, large)]
    best = min(faster, key=lambda way: median(ratios(samples, way, shipped, large)), default=shipped)
    both = start_of(samples, best, RECEIVER, SHIPPED["WEFT_MAPPED_BOTH"])
    least = start_of(samples, RECEIVER, EAGER, SHIPPED["WEFT_MAPPED_MIN"])
    return {"WEFT_MAPPED_MIN": min(least, 64 << 10), "WEFT_MAPPED_BOTH": both, "WEFT_MAPPED_BLOCK": best.block}


HEAD = ["bytes, test", *(way.name for way in candidates())]


def rows(samples):
    """Medians: microseconds one way, GB/s in windows."""
    found = []
    for test in ("latency", "bandwidth"):
        for size in SIZES:
            middles = [median(samples[way, test, size].values()) for way in candidates()]
            found.append([f"{size_name(size)}, {test}", *(number(m if test == "latency" else 1 / m) for m in middles)])
    return found


def file_text(chosen, caption, version, samples, reps):
    """NAME=VALUE, and where that comes from."""
    lines = [f"# weft tune --heap: {caption}", f"# {version}", f"# medians of {reps} launches; latency in us, windows in GB/s", "# " + ", ".join(HEAD)]
    lines += ["# " + "  ".join(row) for row in rows(samples)]
    lines += [f"{name}={value}" + ("" if value != SHIPPED[name] else "   # as shipped") for name, value in chosen.items()]
    return "\n".join(lines) + "\n"
