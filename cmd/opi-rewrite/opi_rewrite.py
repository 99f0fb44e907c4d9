#!/usr/bin/env python3
"""`weft opi-rewrite`: replaces sends and receives of one C source by ownership passing, where that is safe."""
import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from opi_rewrite import fusion, program, source  # noqa: E402

HELP = """The send buffer must be allocated on the heap, not aliased, and dead after the send; what is received must
be read within the same block. What is not seen to be safe stays as it is, and is reported with line, buffer and cause.
The result includes <opi_rewrite.h>. Compiled with -DOPI_ON_MPI it runs on any MPI library.
Status: 0 if something was rewritten, 3 if nothing was, 1 if the source cannot be read."""


def headers():
    """The folder with mpi.h and opi_rewrite.h, which `weft` tells."""
    folder = os.environ.get("WEFT_INCLUDE")
    return [f"-I{folder}"] if folder else []


def compilers_headers():
    """The C compiler's own headers (stddef.h and the like), for a libclang that came without any: searched last."""
    try:
        found = subprocess.run(["cc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return []
    return ["-idirafter", found] if os.path.isabs(found) else []


def arguments():
    parser = argparse.ArgumentParser(prog="weft opi-rewrite", description=__doc__, epilog=HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="a C source")
    parser.add_argument("-o", dest="output", type=pathlib.Path, help="where the result goes (standard output)")
    parser.add_argument("--fuse", action="store_true", help="make one loop of packing, exchange and unpacking where ranks share memory")
    parser.add_argument("-I", dest="folders", action="append", default=[], metavar="DIR", help="a folder with headers")
    parser.add_argument("-D", dest="macros", action="append", default=[], metavar="NAME[=VALUE]", help="a macro")
    return parser.parse_args()


def main():
    args = arguments()
    options = [f"-I{d}" for d in args.folders] + [f"-D{m}" for m in args.macros] + headers() + compilers_headers()
    try:
        read = source.Source(args.source, options)
        report = program.Ownership(read, fusion.Fusion(read) if args.fuse else None).run()
        text = read.edited()
        source.check(args.source, text, options)
    except (source.Unparsable, OSError) as why:
        print(f"weft opi-rewrite: {args.source}: {why}", file=sys.stderr)
        return 1
    for line in report:
        print(f"{args.source}:{line.line}: {line.buffer}: {line.text}", file=sys.stderr)
    if args.output:
        args.output.write_bytes(text.encode("latin-1"))
    else:
        sys.stdout.buffer.write(text.encode("latin-1"))
    return 0 if any(line.done for line in report) else 3


if __name__ == "__main__":
    sys.exit(main())
