"""What the tests of the ABI share: the command line, the facts, and compiling small programs."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

parser = argparse.ArgumentParser()
parser.add_argument('--source', required=True)
parser.add_argument('--build', required=True)
parser.add_argument('--cc', default='cc')
parser.add_argument('--cxx', default='c++')
parser.add_argument('--sanitize', default='')
parser.add_argument('--check-handles', type=int, default=0)
args, rest = parser.parse_known_args()

INCLUDE = os.path.join(args.build, 'include')
LIB = os.path.join(args.build, 'lib')
LIBRARY = os.path.join(LIB, 'libmpi_abi.so.1')

with open(os.path.join(args.source, 'tables', 'mpi_abi.json'), encoding='utf-8') as f:
    ABI = json.load(f)


def run(command, **keywords):
    keywords.setdefault('timeout', 600)
    return subprocess.run(command, capture_output=True, text=True, check=False, **keywords)


class Programs(unittest.TestCase):
    """A test case with a folder of its own to compile in."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='weft-abi-')
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as out:
            out.write(text)
        return self.path(name)

    def must(self, command, **keywords):
        done = run(command, **keywords)
        self.assertEqual(done.returncode, 0, f'{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}')
        return done

    def compile(self, source, *flags, compiler=None):
        cxx = source.endswith('.cpp')
        out = self.path(os.path.splitext(os.path.basename(source))[0])
        sanitize = [f'-fsanitize={args.sanitize}'] if args.sanitize else []
        self.must([compiler or (args.cxx if cxx else args.cc), *sanitize, source, '-I', INCLUDE, '-o', out, *flags])
        return out

    def link(self, source, *flags):
        return self.compile(source, *flags, '-L', LIB, '-lmpi_abi', f'-Wl,-rpath,{LIB}')


def main():
    unittest.main(argv=[sys.argv[0], *rest], verbosity=1)
