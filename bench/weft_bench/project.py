"""What a program gains when its communication gets faster: Amdahl's law on a measured share."""

CAVEAT = ("Read it with care: it takes all time in communication calls for time that faster communication shortens, also where a rank "
          "only waits\nfor one that computes; and a gain measured on a pattern is that of its sizes. The published factor of 15.1 "
          "(Sweep3D, partitioned beside one\nthread) comes from a program whose styles, in the public version, move different amounts "
          "of data under the same nominal size.")


def speedup(share, gain):
    """Of the whole program; share of its time in communication, from 0 to 1, which becomes `gain` times as fast."""
    if not 0 <= share <= 1 or gain <= 0:
        raise ValueError(f"a share of {100 * share:g} % and a gain of {gain:g}: a share is from 0 to 100 %, a gain above 0")
    return 1 / ((1 - share) + share / gain)
