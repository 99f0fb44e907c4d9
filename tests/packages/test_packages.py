"""The wheel in a clean virtual environment, and the Debian package in a root of its own."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["WEFT_BUILD"]
SOURCE = pathlib.Path(os.environ["WEFT_SOURCE"])
SECONDS = 300
PROGRAM = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int rank, size, from = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    printf("%d<-%d\\n", rank, from);
    MPI_Finalize();
    return 0;
}
"""


def run(*command, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "LD_LIBRARY_PATH", "PYTHON", "PIP_", "VIRTUAL_ENV"))}
    env.update(more.pop("env", {}))
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=SECONDS, env=env, **more)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Packages(unittest.TestCase):
    def setUp(self):
        self.area = pathlib.Path(tempfile.mkdtemp(prefix="weft-packages-"))
        self.addCleanup(shutil.rmtree, self.area)

    @classmethod
    def setUpClass(cls):
        cls.dist = pathlib.Path(tempfile.mkdtemp(prefix="weft-dist-"))
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dist)

    def pack(self, kind):
        out = run(sys.executable, "-B", SOURCE / "packaging" / f"{kind}.py", "--build-dir", BUILD, "--out", self.dist)
        self.made[kind] = pathlib.Path(out.strip())
        return self.made[kind]

    def package(self, kind):
        return self.made.get(kind) or self.pack(kind)

    def check(self, bin_folder):
        """Builds and runs a program with what lies in that folder, and with nothing else of Weft's."""
        source, program = self.area / "p.c", self.area / "p"
        source.write_text(PROGRAM)
        run(bin_folder / "mpicc", source, "-o", program)
        self.assertEqual(sorted(run(bin_folder / "mpiexec", "-n", 3, program).split()), ["0<-2", "1<-0", "2<-1"])
        # hwloc and the C++ runtime are linked in.
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", bin_folder / "mpiexec"))
        self.assertLessEqual(set(needed), {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})
        libraries = run("ldd", program)
        self.assertIn(str(bin_folder.resolve().parent), libraries)
        self.assertNotIn(BUILD, libraries)

    def test_wheel(self):
        wheel = self.package("wheel")
        self.assertRegex(wheel.name, r"^weft_mpi-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl$")
        venv = self.area / "venv"
        run(sys.executable, "-m", "venv", venv)
        run(venv / "bin/python", "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel)
        self.check(venv / "bin")
        self.assertFalse((venv / "lib/libmpi.so").exists(), "a wheel must not bring a libmpi.so of another ABI")
        self.assertFalse([p for p in (venv / "lib").glob("libmpi*") if p.is_symlink()])
        run(venv / "bin/python", "-m", "pip", "uninstall", "-y", "weft-mpi")
        self.assertEqual([p for p in venv.rglob("*") if "mpi" in p.name.lower() and "site-packages" not in str(p)], [])

    def test_the_same_build_makes_the_same_wheel(self):
        first = self.pack("wheel").read_bytes()
        self.assertTrue(first == self.pack("wheel").read_bytes())

    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb here")
    def test_deb(self):
        deb = self.package("deb")
        root = self.area / "root"
        run("dpkg-deb", "--extract", deb, root)
        self.assertIn("weft-mpi", run("dpkg-deb", "--field", deb, "Package"))
        # Beside others: nothing that MPICH's or Open MPI's packages own.
        files = {p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir()}
        taken = {"usr/bin/mpiexec", "usr/bin/mpirun", "usr/bin/mpicc", "usr/bin/mpicxx", "usr/include/mpi.h",
                 "usr/share/man/man1/mpiexec.1.gz"}
        self.assertFalse(files & taken)
        self.assertFalse([f for f in files if "libmpi.so" in f])
        self.assertIn("usr/bin/mpiexec.weft", files)
        self.check(root / "usr/lib/weft/bin")
        # The names in /usr/bin are links to these.
        for name in ("mpicc", "mpiexec"):
            self.assertEqual((root / f"usr/bin/{name}.weft").resolve(), (root / f"usr/lib/weft/bin/{name}").resolve())

    @unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("update-alternatives"), "no Debian tools here")
    def test_deb_scripts(self):
        deb = self.package("deb")
        scripts = self.area / "scripts"
        run("dpkg-deb", "--control", deb, scripts)
        # update-alternatives on a database and a root of our own.
        fake = self.area / "fake"
        (fake / "bin").mkdir(parents=True)
        log = fake / "log"
        tool = fake / "bin/update-alternatives"
        tool.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
        tool.chmod(0o755)
        path = f"{fake}/bin:{os.environ['PATH']}"
        run(scripts / "postinst", "configure", env={"PATH": path})
        run(scripts / "prerm", "remove", env={"PATH": path})
        lines = log.read_text().splitlines()
        self.assertEqual(len(lines), 4)
        self.assertTrue(lines[0].startswith("--install /usr/bin/mpirun mpirun /usr/bin/mpirun.weft 30 --slave /usr/bin/mpiexec"))
        self.assertTrue(lines[1].startswith("--install /usr/bin/mpicc mpi /usr/bin/mpicc.weft 30"))
        self.assertNotIn("libmpi.so", log.read_text())
        self.assertEqual(lines[2:], ["--remove mpirun /usr/bin/mpirun.weft", "--remove mpi /usr/bin/mpicc.weft"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
