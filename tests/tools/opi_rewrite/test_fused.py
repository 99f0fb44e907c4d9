"""The second pass: fused programs print what the originals print, and fuse where memory is shared and nowhere else."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from common import BUILD, HERE, SECONDS, compare, rewrite
from test_rewritten import WAYS, agree, compiled, printed

RANKS = (1, 2, 3, 4)
SOURCES = ("lj", "fft2d", "apart")


def counts(program, ranks):
    """How many exchanges each rank has fused."""
    r = subprocess.run([BUILD / "bin/mpiexec", "-n", str(ranks), program], capture_output=True, text=True, timeout=SECONDS,
                       env={**os.environ, "OPI_FUSE_REPORT": "1"}, check=True)
    return [int(n) for n in re.findall(r"rank \d+ fused (\d+) exchanges", r.stderr)]


class Fused(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)

    def fuse(self, source):
        output = self.place / ("fused_" + source.name)
        status, report = rewrite(source, output, "--fuse", "-DOPI_ON_MPI")
        self.assertEqual(status, 0)
        compare(self, source, report)
        return output, [text for _, _, text in report if text.startswith("fused")]

    def agree(self, source, output):
        """Compiles original and result, runs them, and returns the result's program that the library's ownership passing is not in."""
        agree(self, source, output, RANKS)
        return self.place / "on_mpi"

    def test_exchanges_are_fused_and_agree(self):
        expected = {"lj": (2, ["sender", "receiver"], 120), "fft2d": (1, ["receiver"], None), "apart": (2, ["sender", "receiver"], None)}
        for name in SOURCES:
            with self.subTest(name):
                source = HERE / f"fused/{name}.c"
                output, fused = self.fuse(source)
                number, sides, often = expected[name]
                self.assertEqual([re.search(r"the (\w+) runs", text)[1] for text in fused], sides)
                self.assertEqual(len(fused), number)
                program = self.agree(source, output)
                for n in (2, 4):
                    found = counts(program, n)
                    self.assertEqual(len(found), n)
                    self.assertGreater(min(found), 0)
                    if often:
                        self.assertEqual(set(found), {often})

    def test_only_what_lies_apart_and_is_of_one_size_is_fused(self):
        output, _ = self.fuse(HERE / "fused/apart.c")
        # Of 12 steps 8 have a list apart from what is received, 6 unpack as many elements as are packed, and these overlap.
        self.assertEqual(counts(compiled(output, self.place / "apart", *WAYS["on_mpi"]), 2), [8, 8])

    def test_private_memory_is_not_reached(self):
        for name in SOURCES:
            with self.subTest(name):
                source = self.place / f"{name}.c"
                text = (HERE / f"fused/{name}.c").read_text()
                text = re.sub(r"MPI_Alloc_mem\((.*), MPI_INFO_NULL, &(\w+)\);", r"\2 = malloc(\1);", text)
                source.write_text(re.sub(r"MPI_Free_mem\(", "free(", text))
                output, fused = self.fuse(source)
                self.assertGreater(len(fused), 0)
                program = self.agree(source, output)
                self.assertEqual(counts(program, 3), [0, 0, 0])

    def test_exchanges_that_may_not_be_fused(self):
        source = HERE / "not_fused/sites.c"
        output, fused = self.fuse(source)
        self.assertEqual(fused, [])
        self.assertNotIn("opi_fuse", output.read_text())
        self.agree(source, output)

    def test_programs_whose_other_messages_are_not_seen(self):
        text = (HERE / "fused/fft2d.c").read_text()
        for old, new, said in (
                ("    MPI_Init(&argc, &argv);\n", "    extern void start(int *, char ***);\n    start(&argc, &argv);\n", "MPI is not initialised in this source"),
                ("    MPI_Finalize();\n", "    MPI_Probe(0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n    MPI_Finalize();\n", "MPI_Probe could get"),
                ("    MPI_Finalize();\n    return 0;\n", "    return MPI_Finalize();\n", "the call is not a statement of its own"),
                ("from, TRANSPOSE", "from, MPI_ANY_TAG", "its two tags are not one constant")):
            with self.subTest(said):
                source = self.place / "program.c"
                source.write_text(text.replace(old, new))
                self.assertNotEqual(source.read_text(), text)
                status, report = rewrite(source, self.place / "output.c", "--fuse", "-DOPI_ON_MPI")
                self.assertEqual(status, 0)
                self.assertRegex("\n".join(t for _, _, t in report), f"not fused: .*{said}")
                self.assertNotIn("opi_fuse", (self.place / "output.c").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
