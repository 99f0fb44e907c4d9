"""Programs that must stay as they are: each refusal names line, buffer and cause, and not a byte changes."""
import pathlib
import subprocess
import tempfile
import unittest

from common import BUILD, HERE, SECONDS, compare, remarks, rewrite

SOURCES = sorted((HERE / "refused").glob("*.c"))


class Refused(unittest.TestCase):
    def test_nothing_changes_and_the_cause_is_named(self):
        causes = set()
        with tempfile.TemporaryDirectory() as folder:
            for source in SOURCES:
                with self.subTest(source.name):
                    output = pathlib.Path(folder) / source.name
                    status, report = rewrite(source, output, "-DOPI_ON_MPI")
                    compare(self, source, report)
                    self.assertEqual(status, 3)
                    self.assertEqual(output.read_bytes(), source.read_bytes())
                    causes |= set(remarks(source).values())
        self.assertGreaterEqual(len(causes), 40)

    def test_sources_compile(self):
        for source in SOURCES:
            subprocess.run([BUILD / "bin/mpicc", "-fsyntax-only", "-Wall", "-Wno-unknown-pragmas", source], check=True, timeout=SECONDS)

    def test_what_cannot_be_read_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.c"
            broken.write_text("int main(void) { return undeclared; }\n")
            for source, said in ((broken, "undeclared identifier"), (broken.with_name("absent.c"), "No such file")):
                r = subprocess.run([BUILD / "bin/weft", "opi-rewrite", source], capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual((r.returncode, r.stdout), (1, ""))
                self.assertIn(said, r.stderr)

    def test_a_source_without_messages(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = pathlib.Path(folder) / "plain.c"
            plain.write_bytes(b"/* \xe9 */\nint main(void) { return 0; }\n")
            r = subprocess.run([BUILD / "bin/weft", "opi-rewrite", plain], capture_output=True, timeout=SECONDS)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (3, plain.read_bytes(), b""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
