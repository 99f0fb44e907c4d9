"""The manual pages: one for each call of the ABI and of weft.h, naming each of its parameters, and sound to the formatter."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["WEFT_SOURCE"])


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-manual-"))
        subprocess.run([sys.executable, "-B", SOURCE / "gen/manual.py", "--tables", SOURCE / "tables", "--out", cls.folder / "man3",
                        "--version", "1.2.3"], check=True)

        subprocess.run([sys.executable, "-B", SOURCE / "gen/extension_manual.py", "--header", SOURCE / "include/weft.h",
                        "--out", cls.folder / "extensions/man3", "--version", "1.2.3"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_every_call_and_every_parameter(self):
        functions = json.loads((SOURCE / "tables/mpi_abi.json").read_text())["functions"]
        names = {f["name"] for f in functions}
        self.assertEqual({p.stem for p in (self.folder / "man3").iterdir()}, names)
        for f in functions:
            text = (self.folder / "man3" / f"{f['name']}.3").read_text()
            if text.startswith(".so man3/"):
                text = (self.folder / text.split()[1]).read_text()
                self.assertIn(f"{f['name']} differs in the width", text)
            self.assertIn(f"{f['returns']} {f['name']}(", text.replace("\\-", "-"))
            for p in f["params"]:
                if p["type"] != "...":
                    self.assertIn(f"\n.I {p['name']}\n", text, f["name"])

    def test_every_page_says_what_the_call_does(self):
        seen = {}
        for page in sorted((self.folder / "man3").iterdir()):
            text = page.read_text()
            if text.startswith(".so man3/"):
                continue
            said = re.search(r"\n\.SH DESCRIPTION\n(.*)\n\.SH ", text)
            self.assertIsNotNone(said, page.stem)
            self.assertRegex(said[1], r"^[A-Z].*\.$", page.stem)
            self.assertGreaterEqual(len(said[1].split()), 6, f"{page.stem}: {said[1]}")
            # No other call does the same, but for forms that have other parameters: their names differ by _c.
            other = seen.setdefault(said[1], page.stem)
            self.assertEqual(other.removesuffix("_c"), page.stem.removesuffix("_c"), said[1])

    def test_every_extension(self):
        text = (SOURCE / "include/weft.h").read_text()
        names = set(re.findall(r"^[\w ]+[ *](\w+)\(", text, re.M)) | set(re.findall(r"^#define (MPIX_\w+)", text, re.M))
        names = {n for n in names if not n.startswith("PMPIX_")}
        self.assertGreater(len(names), 20)
        folder = self.folder / "extensions"
        self.assertEqual({p.stem for p in (folder / "man3").iterdir()}, names)
        for name in names:
            text = (folder / "man3" / f"{name}.3").read_text()
            if text.startswith(".so man3/"):
                text = (folder / text.split()[1]).read_text()
            self.assertRegex(text, rf"(?m)^(.*[ *]{name}\(.*\);|#define {name} .*)$")
            said = re.search(r"\n\.SH DESCRIPTION\n(.*)\n", text)
            self.assertGreaterEqual(len(said[1].split()), 6, name)

    def test_descriptions_are_of_calls_that_there_are(self):
        names = {f["name"] for f in json.loads((SOURCE / "tables/mpi_abi.json").read_text())["functions"]}
        facts = json.loads((SOURCE / "tables/mpi_abi.json").read_text())
        known = names.union(facts["handles"], facts["addresses"], facts["integers"], facts["integer_types"])
        for group in json.loads((SOURCE / "tables/descriptions.json").read_text()).values():
            for name, text in group.items():
                self.assertIn(name, names)
                for word in re.findall(r"MPI_\w+", text):
                    self.assertIn(word, known | {"MPI_INFO_ENV", "MPI_WIN_BASE", "MPI_TAG_UB"}, name)

    def test_references_exist(self):
        for page in (self.folder / "man3").iterdir():
            for line in page.read_text().splitlines():
                if line.startswith(".BR "):
                    self.assertTrue((self.folder / "man3" / f"{line.split()[1]}.3").exists(), f"{page.name}: {line}")

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_the_formatter_has_no_complaint(self):
        pages = sorted(p for p in self.folder.rglob("*.3") if not p.read_text().startswith(".so"))
        r = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", *pages], capture_output=True, text=True, cwd=self.folder,
                           timeout=300)
        self.assertEqual((r.returncode, r.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
