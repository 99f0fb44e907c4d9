"""The 95 % interval of a median, by order statistics: no assumption about the distribution, no random numbers.

Each of n independent samples lies below the true median with probability 1/2, so the k-th smallest and the k-th largest
enclose it with probability 1 - 2 P(fewer than k of n fair coins show heads). The largest k for which that is at least
95 % is taken: the smallest and the largest sample for n = 6 to 8, the second ones for n = 9 to 11. Fewer than 6 samples give
no such interval.
"""
import math


def median_interval(values, confidence=0.95):
    """(low, high), or None where there are too few values."""
    ordered = sorted(values)
    n, rank, outside = len(ordered), 0, 0.0
    while rank < n // 2:
        outside += 2 * math.comb(n, rank) / 2 ** n
        if outside > 1 - confidence:
            break
        rank += 1
    return (ordered[rank - 1], ordered[n - rank]) if rank else None
