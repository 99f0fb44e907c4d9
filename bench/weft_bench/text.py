"""Medians, tables for the terminal and a progress bar; nothing here knows what is measured."""
import math
import statistics
import sys
import time

median = statistics.median


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def size_name(size):
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def number(value, digits=3):
    """Three significant digits without exponents: 0.0834, 1.25, 37.4, 1180."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 6)}f}"


def spread(values):
    return f"{number(min(values))}..{number(max(values))}"


def table(head, rows, left=1):
    """Columns as wide as needed; the first `left` are text, the others are numbers and stand at the right."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row):
        return "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))).rstrip()
    return "\n".join([line(cells[0]), "  ".join("-" * w for w in width), *map(line, cells[1:])])


def markdown(head, rows):
    """A table of Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


class Progress:
    """One line on stderr, redrawn in place on a terminal; a line per tenth elsewhere, so that logs stay short."""

    def __init__(self, steps, stream=sys.stderr):
        self.steps, self.done, self.stream = max(1, steps), 0, stream
        self.start, self.said = time.monotonic(), -1
        self.live = stream.isatty()

    def _draw(self, what):
        share = self.done / self.steps
        if self.live:
            filled = int(32 * share)
            left_s = (time.monotonic() - self.start) / share * (1 - share) if share else 0
            bar = "#" * filled + "." * (32 - filled)
            self.stream.write(f"\r[{bar}] {share:4.0%}  {left_s:4.0f} s left  {what:<40.40}")
        elif int(share * 10) != self.said:
            self.said = int(share * 10)
            self.stream.write(f"{share:4.0%}  {what}\n")
        self.stream.flush()

    def begin(self, what):
        self._draw(what)

    def step(self):
        self.done = min(self.steps, self.done + 1)

    def say(self, text):
        """A line of results on stdout that does not tear the bar."""
        self.clear()
        print(text, flush=True)

    def clear(self):
        if self.live:
            self.stream.write("\r" + " " * 100 + "\r")
            self.stream.flush()
