"""The page on the application studies: what the paper did and found, the tables measured here, and what cannot be had.

`weft bench apps --report FILE` writes it; only its words are kept here.
"""
import os
import pathlib

from .text import markdown

HEAD = """# Application studies: how small a rank's part may become

*This page was written by* `{command}`.

The paper "Why Is MPI So Slow? Analyzing the Fundamental Limits in Implementing MPI-3.1" (SC17) ends with two applications at their limit of strong
scaling, where a rank has so little to compute that the cost of each message decides. Both are here as programs of
[apps](../../apps/README.md), in plain C on `mpi.h`, and run on any library with the standard ABI.

| | Paper | Here |
|---|---|---|
| Mass matrix (4.3) | conjugate gradients on the mass matrix of spectral elements, E = 2^14 to 2^21 elements of order N = 3, 5, 7 | the same, `weft-sem`: E / P from 1 to 128, so n / P from 27 to 43,904, as there; M = 3 (N + 1) / 2 Gauss points, which the paper does not tell |
| ... ranks | 16,384, on 512 nodes of a Blue Gene/Q | {ranks}; of P ranks each has P - 1 neighbours instead of up to 26 |
| Molecular dynamics (4.4) | LAMMPS, 3 million atoms of a Lennard-Jones liquid, to 8,192 nodes: 23 atoms a rank | `weft-lj --form mpi`: the same liquid with LAMMPS's own settings, staged exchange, reverse communication, neighbours sought anew every 20 steps; 24, 100 and 1,000 atoms a rank (boxes of whole cells do not have 23) |
| Compared | MPICH/CH4 with MPICH/Original | Weft with the libraries installed here |

Measured on {caption}.

**How to read the tables.** *Its time by Weft's* is above 1 where Weft is faster; launches are paired and the 95 % interval is that of the median
over them ([how things are measured](../../bench/README.md)). The metric of the mass matrix is n · iterations / (P · time), grid-point iterations per
CPU-second; a liquid's is atom steps per CPU-second.

**The model** is the paper's: T_P = O + W / P. W / P is measured as the same work by the same ranks at the same time, each on a mesh of its own
(mass matrix), or as a P-th of the time that one rank takes for the whole box (liquid). O is what is left of the time: messages, packing, waiting for
each other. *Efficiency* is W / (W + P O) of these measured values. *Model* takes one O, that of the smallest problem, and the work of a point from the largest.
A dash stands for an O below what can be told from the work.
At a given efficiency, a library with half the O runs the same problem on twice the ranks in half the time, for the same energy: energy is
c P T_P = c (P O + W).

**The wait of the ranks for each other** is part of O: two CPUs of a virtual machine seldom run at one pace, and the larger the problem, the more of O is that.
"""

# What the paper says, and what the number is that stands beside it.
STATEMENTS = (
    ("gain of 1.2 to 1.25 for n / P of 100 to 1,000, all three N", "time of the best peer by Weft's there"),
    ("no gain at the largest n / P", "the same at the largest n / P"),
    ("the gain falls from E / P = 2 to 1, which the paper judges irrelevant", "the same at E / P = 2 and 1"),
    ("order 3 is slow, by caches, vectors and the O(M³ N) of the interpolation", "Weft's million grid-point iterations per CPU-second at the largest n / P"),
    ("efficiency of order one is predicted for n / P above 1,000 to 2,000", "n / P where the model's efficiency is 1/2, on Weft"),
    ("LAMMPS on MPICH/Original stops scaling at 8,192 nodes, 23 atoms a rank", "efficiency at 24 atoms a rank"),
)

MODEL = """## The model's numbers

O is that of the smallest problem, the work of a grid point or an atom that of the largest. *Efficiency 1/2 at*: the grid points or atoms of a rank for which
they are equal. *O by Weft's*: on Weft the same problem runs on that many times the ranks, in that part of the time, for the same energy.

"""

LIMITS = """## What cannot be had here

- 16,384 ranks: neighbours are fewer, and a sum over all ranks is one exchange. More ranks than CPUs show the scheduler, not the library; the solutions
  are verified at 2, 4 and 8 ranks (`ctest -R 'apps-own.(sem|lj)'`).
- A network: messages go through memory. O is that of a node.
- The node at which a library "stops scaling": it needs the nodes. What is here is its cause, O at that size of part.
- MPICH/Original (ch3), and the energy of a Blue Gene: c is not measured.
"""


def beside_the_paper(found):
    """found: a text for each of STATEMENTS."""
    head = "## What the paper has, and what is seen here\n\nIts curves survive only as statements; no values are printed. MPICH/Original is no peer here.\n\n"
    return head + markdown(["Paper", "Here", ""], [(*said, text) for said, text in zip(STATEMENTS, found)]) + "\n"


def write(path, command, caption, ranks, sections, found, halves, picture):
    """sections: (title, [(head, rows)]); found: a text for each of STATEMENTS; halves: rows of the model's table; picture: a file or None."""
    path = pathlib.Path(path)
    text = HEAD.format(command=command, caption=caption, ranks=" and ".join(map(str, ranks)))
    if picture:
        text += f"\n![Rates, gains and efficiency]({os.path.relpath(picture, path.parent)})\n"
    text += "\n" + beside_the_paper(found)
    for title, tables in sections:
        text += f"\n## {title[0].upper() + title[1:]}\n\n" + "\n\n".join(markdown(head, rows) for head, rows in tables) + "\n"
    text += "\n" + MODEL + markdown(["Series", "Library", "O (us)", "work of one (us)", "efficiency 1/2 at", "O by Weft's"], halves) + "\n\n" + LIMITS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"Page: {path}")
