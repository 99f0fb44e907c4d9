"""Programs that are rewritten: original and result are compiled, run at several numbers of ranks, and print the same."""
import pathlib
import re
import subprocess
import tempfile
import unittest

from common import BUILD, HERE, SECONDS, compare, rewrite

RANKS = (2, 3, 4)
# Ownership passing by MPI calls, under the address checker; and by the library itself once it has it.
WAYS = {"checked": ["-DOPI_ON_MPI", "-g", "-fsanitize=address,undefined"], "on_mpi": ["-DOPI_ON_MPI", "-O2"]}
if "OPI_Give" in (BUILD / "include/weft.h").read_text():
    WAYS["library"] = ["-O2"]


def compiled(source, program, *options):
    subprocess.run([BUILD / "bin/mpicc", "-std=gnu11", "-Wall", "-Werror", f"-I{HERE / 'programs'}", *options, source, "-o", program, "-lm"],
                   check=True, timeout=SECONDS)
    return program


def run(program, ranks):
    return subprocess.run([BUILD / "bin/mpiexec", "-n", str(ranks), program], capture_output=True, text=True, timeout=SECONDS)


def printed(test, program, ranks):
    r = run(program, ranks)
    test.assertEqual(r.returncode, 0, f"{program.name} at {ranks} ranks: {r.stderr}")
    test.assertGreater(len(r.stdout), 0)
    return sorted(r.stdout.splitlines())


def agree(test, source, output, ranks=RANKS):
    """Compiles original and result in test.place, runs them at each of these numbers of ranks, and compares what they print."""
    original = compiled(source, test.place / "original", "-O2")
    results = {n: printed(test, original, n) for n in ranks}
    for way, flags in WAYS.items():
        program = compiled(output, test.place / way, *flags)
        for n in ranks:
            test.assertEqual(printed(test, program, n), results[n], f"{source.name}, {way}, {n} ranks")


class Rewritten(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.place = pathlib.Path(self.folder.name)

    def agree(self, source, *options):
        output = self.place / source.name
        status, report = rewrite(source, output, f"-I{HERE / 'programs'}", "-DOPI_ON_MPI", *options)
        compare(self, source, report)
        self.assertEqual(status, 0)
        agree(self, source, output)
        return output.read_text()

    def test_programs_agree(self):
        sources = sorted((HERE / "programs").glob("*.c"))
        self.assertGreaterEqual(len(sources), 12)
        for source in sources:
            with self.subTest(source.name):
                text = self.agree(source)
                self.assertRegex(text, r"OPI_(Ig|G)ive|OPI_(It|T)ake")

    def test_nothing_is_left_to_rewrite(self):
        source = HERE / "programs/lj.c"
        once, twice = self.place / "once.c", self.place / "twice.c"
        rewrite(source, once, f"-I{HERE / 'programs'}", "-DOPI_ON_MPI")
        status, report = rewrite(once, twice, f"-I{HERE / 'programs'}", "-DOPI_ON_MPI")
        self.assertEqual((status, report), (3, []))
        self.assertEqual(once.read_text(), twice.read_text())

    def test_buffers_are_allocated_late_and_freed_early(self):
        output = self.place / "lj.c"
        rewrite(HERE / "programs/lj.c", output, f"-I{HERE / 'programs'}", "-DOPI_ON_MPI")
        text = re.sub(r"\s+", " ", output.read_text())
        self.assertIn("OPI_Alloc((void **)&out, out_bytes); for (int i = 0; i < n; i++) {", text)
        self.assertIn("x[3 * (first + i) + 2] = in[3 * i + 2]; } OPI_Free((void **)&in);", text)
        self.assertNotIn("malloc(3 * SEND", text)

    def test_a_message_that_is_too_short_stops_the_program(self):
        source = HERE / "short/short.c"
        output = self.place / "short.c"
        status, _ = rewrite(source, output, f"-I{HERE / 'programs'}", "-DOPI_ON_MPI")
        self.assertEqual(status, 0)
        original = compiled(source, self.place / "original", "-O2")
        self.assertEqual(run(original, 2).returncode, 0)
        r = run(compiled(output, self.place / "rewritten", "-O2", "-DOPI_ON_MPI"), 2)
        self.assertNotEqual(r.returncode, 0)
        self.assertRegex(r.stderr, r"short\.c:\d+: 80 bytes of 'in' are read, and the message from rank \d brought 40")


if __name__ == "__main__":
    unittest.main(verbosity=2)
