"""What the samples of the partitioned suite say: medians, means, 95 % intervals, and pruning where it is asked for."""
from dataclasses import dataclass

from .interval import median_interval
from .text import median, number


@dataclass(frozen=True)
class Summary:
    median: float
    mean: float
    interval: tuple | None  # of the median
    n: int
    counted: str            # what n counts: "launches", or "iterations" where there are too few launches
    undefined: int          # samples that are no number: a transfer too short for the clock

    def __str__(self):
        shown = number(self.median)
        return shown + (f" ({number(self.interval[0])}..{number(self.interval[1])})" if self.interval else "")


def kept_iterations(samples, by, limit):
    """The indices of the iterations none of whose times `by` lies above median + limit x MAD, the median absolute deviation. Whole
    iterations are dropped, by times alone: dropping high values of a merit would drop the best. All of them where limit is None."""
    times = [samples[name] for name in by if name in samples]
    if limit is None or not times:
        return range(len(next(iter(samples.values()))))
    limits = [median(values) + limit * median(abs(v - median(values)) for v in values) for values in times]
    return [i for i in range(len(times[0])) if all(values[i] <= most for values, most in zip(times, limits))]


def summarize(launches):
    """One list of samples for each launch. From six launches on, a launch is the unit, with the median of its samples: libraries
    fall into slow and fast modes by launch. With fewer, all iterations are. None where there is no sample."""
    defined = [[v for v in samples if v is not None] for samples in launches]
    pooled = [v for samples in defined for v in samples]
    if not pooled:
        return None
    by_launch = [median(samples) for samples in defined if samples]
    values, counted = (by_launch, "launches") if len(by_launch) >= 6 else (pooled, "iterations")
    return Summary(median(values), sum(pooled) / len(pooled), median_interval(values), len(values), counted,
                   sum(map(len, launches)) - len(pooled))
