"""The page on the figures of the paper on partitioned communication: what stands behind each, the tables measured here, what follows.

`weft bench figures --report FILE` writes it; only its words are kept here.
"""
import os
import pathlib
import sys

HEAD = """# Partitioned communication: the paper's figures

*This page was written by* `{command}`*, after earlier runs of it for other groups.*

Temuçin, Grant and Afsahi, "Micro-Benchmarking MPI Partitioned Point-to-Point Communication" (ICPP '22), Figures 4 to 13, as far as they can be had on
one machine. Its curves are known only where its prose names values. [The suite](../partitioned-suite.md) tells how each value is defined and
measured, [partitioned.md](../partitioned.md) what Weft does with a partition.

| | Paper | Here |
|---|---|---|
| Machine | two nodes of 2 x 20 Skylake cores, EDR InfiniBand | {caption} |
| Threads | on cores of their own, 1 to 32, and 64 on 40 cores | virtual cores: threads that compute by sleeping; two ranks share the CPUs |
| Library | Open MPI's master with MPIPCL, a layer over messages | Weft with its defaults, and the libraries of the tables |
| Figure 4, overhead | 10 ms, no noise, hot and cold cache | the same, n = 1, 8, 32 |
| 5, perceived bandwidth | uniform noise, 10 and 100 ms | 10 ms without noise; 100 ms with 4 % |
| 6, 7, availability | single noise, 4 %, 10 ms and longer; by noise model, n = 16 | 100 ms: at 10 ms the delay of 0.4 ms is that of a thread's waking |
| 8, early-bird | uniform noise, 10 and 100 ms, 4 and 10 % | 100 ms, 4 %, for the same reason |
| 9, 10, Sweep3D | 4 and 16 partitions, 10 and 100 ms | 10 ms, 4 ranks, 16 partitions, **equal volume in all styles**, received data verified |
| 11, 12, Halo3D | 8 and 64 threads, 10 and 100 ms | 10 ms, 8 ranks, 8 threads, likewise |
| 13, SNAP | a projection from measured shares of time | the paper's shares, the same formula |

Launches of each library: {launches}. A number is the median over them, of the medians of their iterations. With few launches the digits mean little:
read shapes and orders.
"""

SHAPES = """On Weft, by the numbers of the tables below. Two ranks of n threads share the CPUs, so the overhead of 32 partitions holds the waking of 64 threads.

*Early-bird with one message.* A partition's interval begins at its mark, so the wait for the others counts as a transfer before the join, and the metric
is near 1 with one message, too. The share of partitions that have arrived before the join tells the two apart."""

LIMITS = """## What cannot be claimed here

- Bandwidths against a network, the 59.4 times of threads on a second socket, and the 15.1 times of Sweep3D: messages go through memory, there is one
  socket, and the public program of the 15.1 moves eight times less data in its partitioned style than in the one it is compared with.
- The knee where one partition saturates the link: it needs a link that moves data while CPUs compute. Here a copy takes a CPU's time.
- Computing threads that compete for caches and memory: sleeping ones do not.
- 64 threads, and more than 8 ranks: they would show the scheduler. Shares of SNAP on 128 and 256 nodes are the paper's own.
"""


def markdown(head, rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)) + "\n"


def launches_of(session):
    counts = [len(values) for by_library in session.samples.values() for values in by_library.values()]
    if not counts:
        return "no"
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def write(path, session, caption, sections, out):
    """sections: (title, words before the table or "", (head, rows)). Pictures are those that lie in `out`."""
    path = pathlib.Path(path)
    text = HEAD.format(command="weft bench " + " ".join(sys.argv[1:]), caption=caption, launches=launches_of(session))
    for title, words, (head, rows) in sections:
        text += f"\n## {title}\n\n" + (words + "\n\n" if words else "") + markdown(head, rows)
        picture = pathlib.Path(out or ".") / f"figure-{title.split(',')[0].removeprefix('Figure ')}.png"
        if out and picture.exists() and f"({os.path.relpath(picture, path.parent)})" not in text:
            text += f"\n![{title}]({os.path.relpath(picture, path.parent)})\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n" + LIMITS, encoding="utf-8")
    print(f"Page: {path}")
