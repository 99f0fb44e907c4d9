"""Are the results of two runs the same? Numbers may be printed anywhere inside texts, lists and dicts."""
import math


def _number(word):
    try:
        return float(word)
    except (TypeError, ValueError):
        return None


def differences(ours, theirs, tolerance, where=""):
    """What differs, one line each; numbers may be apart by `tolerance` times the larger one."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for key in sorted({*ours, *theirs}):
            if key not in ours or key not in theirs:
                found.append(f"{where}{key}: only on {'the one' if key in ours else 'the other'}")
            else:
                found += differences(ours[key], theirs[key], tolerance, f"{where}{key}: ")
        return found
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return [f"{where}{len(ours)} and {len(theirs)} values"]
        pairs = enumerate(zip(ours, theirs))
        return [line for i, (a, b) in pairs for line in differences(a, b, tolerance, f"{where}[{i}] ")]
    if ours == theirs:
        return []
    words, others = str(ours).split(), str(theirs).split()
    if tolerance and len(words) == len(others):
        def close(a, b):
            x, y = _number(a), _number(b)
            return a == b or (x is not None and y is not None and math.isclose(x, y, rel_tol=tolerance))
        if all(close(a, b) for a, b in zip(words, others)):
            return []
    return [f"{where}{ours} and {theirs}"]
