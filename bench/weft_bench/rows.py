"""One bar each: a ratio, its 95 % interval, and what follows.

A bar is met when its whole interval lies on the right side of the limit, missed when the whole interval lies on the wrong
side, and not decided between the two; a bar that is not decided has not failed. The ratio is the median over the launches
that belong together (session.py), the interval that of this median (interval.py).
"""
from dataclasses import dataclass, field

from .interval import median_interval
from .text import geometric_mean, median, number


@dataclass
class Row:
    what: str
    measured: str
    against: str
    ratios: dict = field(default_factory=dict)  # by repetition
    limit: float | None = None                  # None: for information
    at_most: bool = True
    note: str = ""
    exact: bool = False                         # a count, the same each time
    merged: float | None = None                 # the ratio where no repetition has all parts of a mean

    @property
    def ratio(self):
        return median(self.ratios.values()) if self.ratios else self.merged

    def interval(self):
        return (self.ratio, self.ratio) if self.exact else median_interval(self.ratios.values())

    def verdict(self):
        if self.ratio is None:
            return self.note or "not measured"
        if self.limit is None:
            return "for information"
        interval = self.interval()
        if not interval:
            return f"not decided, n = {len(self.ratios)}"
        good = [v <= self.limit if self.at_most else v >= self.limit for v in interval]
        return "met" if all(good) else "not decided" if any(good) else "MISSED"

    def cells(self):
        limit = "" if self.limit is None else f"{'<=' if self.at_most else '>='} {self.limit:g} x"
        ratio = "-" if self.ratio is None else number(self.ratio) + " x"
        interval = self.interval() if self.ratio is not None and not self.exact else None
        shown = f"{number(interval[0])}..{number(interval[1])}" if interval else "exact" if self.exact else "-"
        return [self.what, self.measured, self.against, ratio, shown, "" if self.exact else len(self.ratios), limit,
                self.verdict()]

    HEAD = ["bar", "Weft", "against", "ratio", "95 % interval", "n", "limit", "verdict"]

    def record(self):
        return {"what": self.what, "weft": self.measured, "against": self.against, "ratio": self.ratio,
                "interval": self.interval() if self.ratio is not None else None,
                "n": len(self.ratios), "limit": self.limit, "verdict": self.verdict()}


def amount(value, unit):
    return "-" if value is None else f"{number(value)} {unit}"


def against_best(session, what, key, unit, lower_is_better, limit, at_most):
    mine = session.middle(key)
    peer = session.best_peer(key, min if lower_is_better else max)
    ratios = session.ratios(key, peer)
    if not ratios:
        return Row(what, amount(mine, unit), "-", {}, limit, at_most,
                   "Weft not measured" if mine is None else "no peer measured")
    # "at most" compares costs (mine / theirs); "at least" compares merits, larger is better whatever the unit.
    if lower_is_better and not at_most:
        ratios = {rep: 1 / ratio for rep, ratio in ratios.items()}
    return Row(what, amount(mine, unit), amount(session.middle(key, peer), f"{unit} ({session.labels[peer]})"),
               ratios, limit, at_most)


def against_key(session, what, key, other_key, unit, limit, other_name="weft", text="", at_most=True):
    return Row(what, amount(session.middle(key), unit),
               amount(session.middle(other_key, other_name), f"{unit} {text}".strip()),
               session.ratios(key, other_name, other_key), limit, at_most)


def against_number(session, what, key, unit, value, limit, against, at_most=True):
    """The median itself, in shares of a fixed value."""
    by_rep = session.samples.get(key, {}).get("weft", {})
    return Row(what, amount(session.middle(key), unit), against, {rep: v / value for rep, v in by_rep.items()}, limit,
               at_most)


def mean_of(what, rows, limit):
    """The geometric mean of several rows, taken within each repetition that has them all; the interval is of its median.
    Where a row could not be measured there is no mean."""
    against = "best peer in each row"
    if not rows or any(row.ratio is None for row in rows):
        return Row(what, "", against, {}, limit, False)
    whole = set.intersection(*(set(row.ratios) for row in rows))
    return Row(what, "", against, {rep: geometric_mean([row.ratios[rep] for row in rows]) for rep in whole}, limit, False,
               merged=geometric_mean([row.ratio for row in rows]))
