"""Installs the build into a temporary prefix, moves it, and asks it what build systems ask: compiler wrappers,
pkg-config, CMake's own FindMPI; then removes it by `make uninstall`'s script and looks for what is left."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["WEFT_BUILD"])
SOURCE = pathlib.Path(os.environ["WEFT_SOURCE"])
CMAKE = os.environ.get("WEFT_CMAKE", "cmake")

EXCHANGE = """#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    double x[4] = {1, 2, 3, 4}, sum[4] = {0}, *to = sum, *from = x;
    MPI_Init(&argc, &argv);
    double *out = malloc(4 * sizeof *out), *in = malloc(4 * sizeof *in);
    for (int i = 0; i < 4; i++)
        out[i] = from[i];
    MPI_Sendrecv(out, 4, MPI_DOUBLE, 0, 1, in, 4, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++)
        to[i] += in[i];
    free(out);
    free(in);
    printf("%g\\n", to[3]);
    MPI_Finalize();
    return 0;
}
"""
PROGRAM = """#include <mpi.h>
#include <stdio.h>
int main(void) {
    int version, subversion, major, minor;
    MPI_Get_version(&version, &subversion);
    MPI_Abi_get_version(&major, &minor);
    printf("%d.%d %d\\n", version, subversion, major);
    return 0;
}
"""


def clean_environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "MPI_", "LD_LIBRARY_PATH"))}
    return kept


def run(*command, ok=True, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, env=more.pop("env", clean_environment()), **more)
    if ok and done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Refused(unittest.TestCase):
    def test_other_processors_and_systems(self):
        for system, processor in (("Linux", "aarch64"), ("FreeBSD", "x86_64")):
            with self.subTest(f"{system} on {processor}"), tempfile.TemporaryDirectory() as d:
                done = run(CMAKE, "-S", SOURCE, "-B", d, f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}", ok=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("Weft runs on Linux on x86-64 alone", done.stderr)
                self.assertIn(f"not on {system} on {processor}", " ".join(done.stderr.split()))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.area = pathlib.Path(tempfile.mkdtemp(prefix="weft install "))  # a space, as users have
        first = cls.area / "first place"
        cls.prefix = cls.area / "moved here"
        # Its own copy of the list of files: the build tree's belongs to the user's last install.
        manifest = BUILD / "install_manifest.txt"
        kept = manifest.read_text() if manifest.exists() else None
        run(CMAKE, "--install", BUILD, "--prefix", first)
        (cls.area / "manifest").write_text(manifest.read_text())
        if kept is None:
            manifest.unlink()
        else:
            manifest.write_text(kept)
        first.rename(cls.prefix)
        cls.bin = cls.prefix / "bin"
        (cls.area / "p.c").write_text(PROGRAM)
        (cls.area / "p.cpp").write_text(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.area)

    def test_files(self):
        for name in ("include/mpi.h", "include/weft.h", "lib/libmpi_abi.so.1", "lib/libmpi_abi.so", "lib/libmpi_abi.a", "bin/mpicc", "bin/mpicc_abi",
                     "bin/mpicxx", "bin/mpic++", "bin/mpiexec", "bin/mpirun", "bin/weft", "lib/pkgconfig/weft.pc", "lib/pkgconfig/mpi-abi.pc"):
            self.assertTrue((self.prefix / name).exists(), name)

    def test_no_build_path_inside(self):
        for path in self.prefix.rglob("*"):
            if path.is_file() and path.suffix in {"", ".pc", ".h"} and path.parent.name in {"bin", "pkgconfig", "include", "mpi"}:
                data = path.read_bytes()
                if data[:4] != b"\x7fELF":
                    self.assertNotIn(str(BUILD).encode(), data, path)

    def test_wrappers_compile_and_run(self):
        for wrapper, source in (("mpicc", "p.c"), ("mpicc_abi", "p.c"), ("mpicxx", "p.cpp"), ("mpic++", "p.cpp")):
            out = self.area / f"program of {wrapper}"
            run(self.bin / wrapper, "-O1", "-o", out, self.area / source)
            self.assertEqual(run(out).stdout, "5.0 1\n")
            dynamic = run("readelf", "-d", out).stdout
            self.assertIn("RUNPATH", dynamic)
            self.assertIn("libmpi_abi.so.1", dynamic)
            # In two steps, the object in between.
            run(self.bin / wrapper, "-c", self.area / source, "-o", self.area / "o.o")
            run(self.bin / wrapper, self.area / "o.o", "-o", out)
            self.assertEqual(run(out).stdout, "5.0 1\n")
            self.assertIn("MPI_Get_version", run(self.bin / wrapper, "-E", self.area / source).stdout)

    def test_opi_rewrite(self):
        source, result, program = self.area / "ring of one.c", self.area / "given.c", self.area / "given"
        source.write_text(EXCHANGE)
        r = run(self.bin / "weft", "opi-rewrite", "--fuse", "-DOPI_ON_MPI", source, "-o", result)
        self.assertIn("out: fused", r.stderr)
        self.assertIn("usage: weft opi-rewrite", run(self.bin / "weft", "opi-rewrite", "--help").stdout)
        run(self.bin / "mpicc", "-DOPI_ON_MPI", result, "-o", program)
        self.assertEqual(run(program).stdout, "4\n")

    def test_wrapper_forms(self):
        mpicc = self.bin / "mpicc"
        include, lib = str(self.prefix / "include"), str(self.prefix / "lib")
        self.assertIn(include, run(mpicc, "-showme:compile").stdout)
        self.assertNotIn("-lmpi_abi", run(mpicc, "-showme:compile").stdout)
        self.assertIn("-lmpi_abi", run(mpicc, "-showme:link").stdout)
        self.assertNotIn("-I", run(mpicc, "-showme:link").stdout)
        self.assertEqual(run(mpicc, "-showme:incdirs").stdout.strip(), include)
        self.assertEqual(run(mpicc, "-showme:libdirs").stdout.strip(), lib)
        self.assertIn("Weft", run(mpicc, "-showme:version").stdout)
        for form in ("-show", "-showme", "-compile-info", "-link-info"):
            self.assertTrue(run(mpicc, form).stdout.startswith("cc "), form)
        self.assertNotIn("-lmpi_abi", run(mpicc, "-show", "-c", "x.c").stdout)
        self.assertIn("-lmpi_abi", run(mpicc, "-show", "x.c").stdout)
        for form in ("-showme:nonsense", "-show:nonsense"):
            self.assertNotEqual(run(mpicc, form, ok=False).returncode, 0, form)
            self.assertEqual(run(mpicc, form, ok=False).stdout, "", form)
        # The compiler's own questions pass through, and do not link.
        self.assertEqual(run(mpicc, "--version").stdout, run("cc", "--version").stdout)
        run(mpicc, "-v")
        self.assertTrue(run(mpicc, "-cc=gcc", "-show").stdout.startswith("gcc "))
        self.assertTrue(run(mpicc, "-show", env={**clean_environment(), "WEFT_CC": "ccache gcc"}).stdout.startswith("ccache gcc "))
        self.assertTrue(run(mpicc, "-show", env={**clean_environment(), "MPI_CC": "clang"}).stdout.startswith("clang "))
        self.assertNotEqual(run(mpicc, self.area / "missing.c", ok=False).returncode, 0)

    def test_through_links_and_path(self):
        link = self.area / "link to mpicc"
        link.unlink(missing_ok=True)
        link.symlink_to(self.bin / "mpicc")
        self.assertEqual(run(link, "-showme:incdirs").stdout, run(self.bin / "mpicc", "-showme:incdirs").stdout)
        path = {**clean_environment(), "PATH": f"{self.bin}:{os.environ['PATH']}"}
        self.assertEqual(run("mpicc", "-showme:incdirs", env=path).stdout.strip(), str(self.prefix / "include"))

    def test_quoting(self):
        # What -show prints, a shell can run, although the prefix has a space in it.
        line = run(self.bin / "mpicc", "-show", self.area / "p.c", "-o", self.area / "shown").stdout
        run("sh", "-c", line)
        self.assertEqual(run(self.area / "shown").stdout, "5.0 1\n")

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config here")
    def test_pkg_config(self):
        env = {**clean_environment(), "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        for package in ("weft", "mpi-abi"):
            flags = run("pkg-config", "--cflags", "--libs", package, env=env).stdout
            self.assertIn("-lmpi_abi", flags)
            run("sh", "-c", f'cc "$1" -o "$2" {flags}', "sh", self.area / "p.c", self.area / "by pc")
        self.assertEqual(run("pkg-config", "--modversion", "mpi-abi", env=env).stdout.strip(), "5.0")

    def test_cmake_finds_it(self):
        # CMake splits what a wrapper prints at spaces, so this one needs a prefix without.
        place = pathlib.Path(tempfile.mkdtemp(prefix="weft-cmake-"))
        try:
            shutil.copytree(self.prefix, place / "weft", symlinks=True)
            project = place / "project"
            project.mkdir()
            (project / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.10)\nproject(p C CXX)\nfind_package(MPI REQUIRED COMPONENTS C CXX)\n"
                "add_executable(p p.c)\ntarget_link_libraries(p MPI::MPI_C)\n"
                "add_executable(q p.cpp)\ntarget_link_libraries(q MPI::MPI_CXX)\n"
                "message(STATUS \"launcher=${MPIEXEC_EXECUTABLE} standard=${MPI_C_VERSION}\")\n")
            for name in ("p.c", "p.cpp"):
                shutil.copy(self.area / name, project / name)
            env = {**clean_environment(), "PATH": f"{place}/weft/bin:{os.environ['PATH']}"}
            out = run(CMAKE, "-S", project, "-B", project / "b", env=env).stdout
            self.assertIn(f"launcher={place}/weft/bin/mpiexec", out)
            self.assertIn("standard=5.0", out)
            run(CMAKE, "--build", project / "b", env=env)
            for program in "pq":
                self.assertEqual(run(project / "b" / program).stdout, "5.0 1\n")
        finally:
            shutil.rmtree(place)

    def meson(self):
        """The machine's own, or one that pip installs into the build tree once."""
        if shutil.which("meson"):
            return "meson"
        venv = BUILD / "apps/meson"
        if not (venv / "bin/meson").exists():
            run(sys.executable, "-m", "venv", venv)
            fetched = run(venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "meson", ok=False)
            if fetched.returncode:
                self.skipTest(f"neither is Meson installed nor can pip fetch it: {fetched.stderr.strip()[-200:]}")
        return venv / "bin/meson"

    def test_meson_finds_it(self):
        meson = self.meson()
        place = pathlib.Path(tempfile.mkdtemp(prefix="weft-meson-"))
        try:
            shutil.copytree(self.prefix, place / "weft", symlinks=True)
            (place / "meson.build").write_text(
                "project('p', 'c', 'cpp')\nexecutable('p', 'p.c', dependencies: dependency('mpi'))\n"
                "executable('q', 'p.cpp', dependencies: dependency('mpi', language: 'cpp'))\n")
            for name in ("p.c", "p.cpp"):
                shutil.copy(self.area / name, place / name)
            env = {**clean_environment(), "PATH": f"{place}/weft/bin:{os.environ['PATH']}"}
            run(meson, "setup", place / "b", place, env=env)
            run(meson, "compile", "-C", place / "b", env=env)
            for program in "pq":
                self.assertEqual(run(place / "b" / program).stdout, "5.0 1\n")
                self.assertIn(f"{place}/weft/lib/libmpi_abi.so.1", run("ldd", place / "b" / program).stdout)
        finally:
            shutil.rmtree(place)

    def test_static(self):
        out = self.area / "static"
        run("cc", "-O2", f"-I{self.prefix}/include", self.area / "p.c", self.prefix / "lib/libmpi_abi.a", "-o", out, "-lpthread", "-ldl", "-lm")
        self.assertEqual(run(out).stdout, "5.0 1\n")
        self.assertNotIn("libmpi_abi", run("readelf", "-d", out).stdout)

    def test_manual_of_the_commands(self):
        folder = self.prefix / "share/man/man1"
        pages = {name: (folder / f"{name}.1").read_text() for name in ("mpiexec", "mpirun", "mpicc", "mpicxx", "mpic++", "mpiCC", "weft")}
        self.assertEqual(pages["mpirun"], pages["mpiexec"])
        for name in ("mpicxx", "mpic++", "mpiCC"):
            self.assertEqual(pages[name], ".so man1/mpicc.1\n")
        # Every option that a command names in its help is in its page, and every control variable.
        for name, command in (("mpiexec", ("mpiexec", "-h")), ("mpicc", ("mpicc", "-h")), ("weft", ("weft", "--help"))):
            text = pages[name].replace("\\-", "-")
            words = [line.split()[0].rstrip(",") for line in run(self.bin / command[0], command[1]).stdout.splitlines()
                     if line.startswith("  ") and not line.startswith("   ")]
            self.assertGreater(len(words), 4)
            for word in words:
                self.assertIn(word, text, name)
        variables = json.loads(run(self.bin / "weft", "info", "--cvars", "--json").stdout)
        self.assertGreater(len(variables), 5)
        for variable, row in variables.items():
            self.assertIn(f".B {variable}={row['value']}", pages["weft"])
        if shutil.which("groff"):
            for name in ("mpiexec", "mpicc", "weft"):
                r = run("groff", "-man", "-ww", "-z", "-Tutf8", folder / f"{name}.1")
                self.assertEqual(r.stderr, "")

    def test_control_variables(self):
        def rows(**env):
            return json.loads(run(self.bin / "weft", "info", "--cvars", "--json", env={**clean_environment(), **env}).stdout)
        plain, changed = rows(), rows(WEFT_EAGER_MAX="64k", WEFT_CMA="off")
        self.assertLessEqual(len(plain), 60)
        self.assertEqual({row["origin"] for row in plain.values()}, {"default"})
        self.assertEqual({name: row["value"] for name, row in changed.items() if row["origin"] == "environment"},
                         {"WEFT_EAGER_MAX": "65536", "WEFT_CMA": "off"})
        misspelt = run(self.bin / "weft", "info", "--cvars", env={**clean_environment(), "WEFT_EGER_MAX": "1", "WEFT_CC": "cc"})
        self.assertEqual(misspelt.stderr, "weft: WEFT_EGER_MAX is set, and is no control variable\n")
        wrong = run(self.bin / "weft", "info", "--cvars", env={**clean_environment(), "WEFT_EAGER_MAX": "much"}, ok=False)
        self.assertEqual(wrong.returncode, 1)
        for name, row in plain.items():
            self.assertTrue((SOURCE / row["evidence"].split("#")[0]).is_file(), f"{name}: {row['evidence']}")

    def test_commands(self):
        self.assertIn("weft 0.", run(self.bin / "weft", "--version").stdout)
        doctor = run(self.bin / "weft", "doctor").stdout
        for line in ("memfd", "fixed address", "single copy", "membarrier", "processors"):
            self.assertIn(line, doctor)
        api = run(self.bin / "weft", "info", "--api").stdout.splitlines()
        self.assertEqual(len(api), 665)
        self.assertNotEqual(run(self.bin / "weft", "nonsense", ok=False).returncode, 0)

    def test_full_disk(self):
        for command in ("weft --help", "weft --version", "weft doctor", "weft info", "weft info --api --json", "mpicc -h", "mpicc --version",
                        "mpicc --help", "mpicc -show", "mpicc -showme:version", "mpicc -showme:compile", "mpicc -link-info"):
            with self.subTest(command), open("/dev/full", "w") as full:
                r = subprocess.run([self.bin / command.split()[0], *command.split()[1:]], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertNotEqual(r.returncode, 0)
                self.assertRegex(r.stderr, "(?i)No space left on device|I/O error|write error")

    def test_documents(self):
        # Every link of every installed document leads to something that is installed, and not to a folder without a page.
        home = next(self.prefix.glob("share/doc/*/README.md")).parent
        pages = sorted(home.rglob("*.md"))
        self.assertGreater(len(pages), 15)
        links = 0
        for page in pages:
            text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                links += 1
                name, _, section = target.partition("#")
                found = (page.parent / name).resolve() if name else page
                where = f"{page.relative_to(home)}: {target}"
                self.assertTrue(found.is_relative_to(home.resolve()) or found == page, f"{where} leads out of the installation")
                self.assertTrue(found.is_file(), f"{where} leads nowhere")
                if section:
                    titles = [re.sub(r"[^\w\- ]", "", t.strip().lower()).replace(" ", "-")
                              for t in re.findall(r"^#+ (.+)$", found.read_text(), flags=re.M)]
                    self.assertIn(section, titles, where)
        self.assertGreater(links, 30)

    def test_uninstall(self):
        # Into the first place again, by its own list.
        first = self.area / "first place"
        shutil.copytree(self.prefix, first, symlinks=True)
        (first / "bin" / "of somebody else").write_text("stays")
        run("sh", SOURCE / "cmake/uninstall.sh", self.area / "manifest", first)
        left = sorted(str(p.relative_to(first)) for p in first.rglob("*"))
        self.assertEqual(left, ["bin", "bin/of somebody else"])
        shutil.rmtree(first)


if __name__ == "__main__":
    unittest.main(verbosity=2)
