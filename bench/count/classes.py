"""`weft count --classes`: what inlining saves an application, by where its datatype comes from.

Three small applications (classes/) send numbers by MPI_Isend to a peer on the null wire. Class 1 has a derived datatype, class 2 a predefined one
that the call names, class 3 a predefined one that a function of another file chooses. Each is linked with the optimised static library in three
stages: 0, nothing is inlined; 1, the MPI calls are inlined into the file that makes them; 2, the application's other files are, too.
A call's cost goes at stage 1 for all; the decoding of a datatype goes where its constant is seen: at stage 1 for class 2, at stage 2 for
class 3, never for class 1. Counted is the slope of the loop that sends, caller included.
"""
import json
import pathlib
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import callgrind  # noqa: E402
import weft_count  # noqa: E402
from weft_bench import runner  # noqa: E402
from weft_bench.text import table  # noqa: E402

SOURCES = HERE / "classes"
CLASSES = {"1 derived type": "derived", "2 predefined, named in the call": "constant", "3 predefined, chosen at run time": "runtime"}
STAGES = {0: "calls", 1: "MPI inlined", 2: "application inlined, too"}
INLINED = {0: (), 1: ("app",), 2: ("app", "real", "main")}   # what is compiled for link-time optimisation, by stage
PUBLISHED = "Expected by the paper (no counts are printed): class 2 falls at stage 1, class 3 at stage 2 only, class 1 at neither"


@dataclass
class Program:
    """One application in one stage."""
    count: float   # instructions of a send
    text: int      # bytes of code of the whole program
    own: int       # bytes of send_numbers, into which calls are inlined


def build(tree, name, stage, out):
    """Compiles each file by itself, so that the stage decides for each what the linker may inline."""
    objects = []
    for part, source in (("app", name), ("real", "real"), ("main", "main")):
        target = out / f"{part}.o"
        lto = "-flto" if part in INLINED[stage] else "-fno-lto"
        weft_count.call(["cc", *weft_count.FLAGS, lto, "-I", str(tree / "include"), "-c", str(SOURCES / f"{source}.c"), "-o", str(target)])
        objects.append(str(target))
    program = out / name
    link = ["-flto", *weft_count.FLAGS] if stage else ["-fno-lto"]
    weft_count.call(["cc", *link, *objects, str(tree / "lib" / "libmpi_abi.a"), "-lpthread", "-ldl", "-o", str(program)])
    return program


def text_of(program):
    """Bytes of its code, and those of send_numbers or of what the compiler made of it (send_numbers.constprop.0)."""
    whole = int(weft_count.call(["size", str(program)]).splitlines()[1].split()[0])
    symbols = [line.split() for line in weft_count.call(["nm", "-S", str(program)]).splitlines()]
    return whole, sum(int(s[1], 16) for s in symbols if len(s) == 4 and s[3].partition(".")[0] == "send_numbers")


def count(tree, name, stage, work):
    out = work / f"{name}-{stage}"
    out.mkdir(parents=True)
    program = build(tree, name, stage, out)
    try:
        runner.execute([*weft_count.valgrind(out, True), str(program)], {**weft_count.environment(), "WEFT_WIRE": "null"}, 300)
    except runner.Broken as why:
        raise weft_count.Failed(str(why)) from None
    measured, _ = callgrind.phases(out)
    if "send" not in measured:
        raise weft_count.Failed(f"callgrind left no counts of {name}")
    return Program(round(weft_count.per_call(measured, "send", True), 2), *text_of(program))


def count_all(root, work):
    """{class: {stage: Program}}"""
    tree = weft_count.variant(root, "optimised")
    return {what: {stage: count(tree, name, stage, work) for stage in STAGES} for what, name in CLASSES.items()}


def breaches(found):
    """Where the counts are not what the stages of inlining make them, one instruction aside for how registers fall."""
    derived, constant, chosen = ([found[what][stage].count for stage in STAGES] for what in CLASSES)
    wrong = []
    if any(one[1] >= one[0] for one in (derived, constant, chosen)):
        wrong.append("inlining the call saves nothing")
    if constant[1] >= chosen[1]:
        wrong.append("class 2 does not fall below class 3 at stage 1")
    if chosen[2] >= chosen[1] or abs(chosen[2] - constant[2]) > 1:
        wrong.append("class 3 does not fall to class 2 at stage 2")
    if abs(constant[2] - constant[1]) > 1:
        wrong.append("class 2 changes at stage 2")
    if abs(derived[2] - derived[1]) > 1:
        wrong.append("class 1 changes at stage 2")
    return wrong


def show(compiler, found):
    print(f"instructions of an MPI_Isend of one number, null wire, optimised library, {compiler}; the loop itself is taken off")
    rows = []
    for what, stages in found.items():
        counts = [stages[stage].count for stage in STAGES]
        rows.append([what, *(f"{c:.1f}" for c in counts), f"{counts[1] - counts[0]:+.1f}", f"{counts[2] - counts[1]:+.1f}",
                     *(str(stages[stage].own) for stage in STAGES), f"{stages[2].text - stages[1].text:+d}"])
    print(table(["class", *(f"stage {s}" for s in STAGES), "0 to 1", "1 to 2", *(f"code {s}" for s in STAGES), "program"], rows))
    print("stages: " + "; ".join(f"{stage} {what}" for stage, what in STAGES.items())
          + ". code: bytes of the function that sends; program: bytes of code that stage 2 adds to the whole program")
    print(PUBLISHED)


def run(root, work, as_json):
    """Returns the exit status: 1 where a stage does not do what it must."""
    try:
        compiler = weft_count.compiler_of(root / "lib" / "libmpi_abi.so.1")
        found = count_all(root, work / "classes")
    except weft_count.Failed as why:
        print(f"weft count: {why}", file=sys.stderr)
        return weft_count.BROKEN
    wrong = breaches(found)
    if as_json:
        print(json.dumps({"compiler": compiler, "breaches": wrong,
                          "classes": {what: {stage: vars(p) for stage, p in stages.items()} for what, stages in found.items()}}, indent=1))
    else:
        show(compiler, found)
    for why in wrong:
        print(f"weft count: {why}", file=sys.stderr)
    return weft_count.GREW if wrong else 0
