#!/usr/bin/env python3
"""Checks the floors of src/: includes go only downward, MPI's words stay above obj/, system calls stay in os/.

usage: layering.py [ROOT]
Prints every breach as `file:line: what` and ends with status 1 if there was one.
"""
import pathlib
import re
import sys

# What each floor may include, besides itself. `base` includes nothing of ours; all may include base.
MAY = {
    "base": set(),
    "os": set(),
    "op": {"type"},
    "type": set(),
    "heap": {"os"},
    "wire": {"heap", "os"},
    "lane": {"wire", "heap", "os"},
    "boot": {"heap", "os"},
    "obj": {"boot", "lane", "wire", "heap", "os", "type", "op"},
    "p2p": {"obj", "boot", "lane", "wire", "heap", "os", "type", "op"},
    "coll": {"p2p", "obj", "boot", "lane", "heap", "os", "type", "op"},
    "comm": {"coll", "p2p", "obj", "boot", "lane", "wire", "heap", "os", "type", "op"},
}
UPPER = {"comm", "coll", "p2p", "obj", "boot", "lane", "wire", "heap", "os", "type", "op"}
for floor in ("rma", "part", "io", "topo", "tool"):
    MAY[floor] = set(UPPER)
MAY["calls"] = {"obj", "boot", "heap", "os", "type", "op"}
MAY["api"] = UPPER | {"calls", "rma", "part", "io", "topo", "tool"}

# Floors that know MPI's handles and names.
KNOW_MPI = {"api", "calls", "obj", "p2p", "coll", "comm", "rma", "part", "io", "topo", "tool"}

# System calls by their names; a dot, an arrow or a scope before the name makes it something else. Everyday words (open, read,
# poll ...) are left to the headers below, without which they cannot be called.
CALLS = ("mmap munmap mremap madvise mprotect memfd_create ftruncate fallocate posix_fallocate openat readv writev pread pwrite ioctl fcntl "
         "dup2 pipe2 socket socketpair accept4 sendmsg recvmsg fork vfork execve execvp posix_spawn waitpid wait4 tgkill syscall prctl ptrace "
         "process_vm_readv process_vm_writev futex membarrier sched_yield sched_setaffinity sched_getaffinity nanosleep clock_nanosleep usleep "
         "epoll_create1 epoll_wait getpid gettid getppid dlopen dlsym dlclose shm_open shm_unlink sigaction getrlimit setrlimit sysconf "
         "gethostname uname").split()
CALL = re.compile(r"(?<![\w.:>~])(?:::)?(" + "|".join(CALLS) + r")\s*\(")
# Headers that only os/ needs.
SYSTEM_HEADER = re.compile(r'#\s*include\s*<(sys/(?!types\.h)|linux/|unistd\.h|fcntl\.h|sched\.h|dlfcn\.h|poll\.h|signal\.h|spawn\.h)')
INCLUDE = re.compile(r'#\s*include\s*"([^"]+)"')
MPI_WORD = re.compile(r"\bP?MPI_[A-Z]\w*|\bmpi\.h\b")
# The library is C++ without its runtime: only these standard headers have no code behind them.
STANDARD = {"atomic", "bit", "concepts", "span", "type_traits", "utility", "array", "cstdint", "cstddef", "limits", "compare", "tuple", "new"}
CPP_HEADER = re.compile(r"#\s*include\s*<(\w+)>")
C_HEADERS = {"cstring", "cstdio", "cstdlib", "cstdarg", "cerrno", "climits", "cmath", "ctime", "cctype", "cinttypes", "cassert", "complex"}


def code_of(text):
    """The text with comments and string literals blanked out, lines kept."""
    def blank(match):
        found = match.group(0)
        if found.startswith('"') or found.startswith("'"):
            return found[0] + " " * (len(found) - 2) + found[-1]
        return re.sub(r"[^\n]", " ", found)
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_file(path, relative, floor, breaches):
    text = path.read_text()
    lines = code_of(text).splitlines()
    is_test = path.name.endswith("_test.cpp") or path.name.endswith("_test.hpp")
    for number, (line, raw) in enumerate(zip(lines, text.splitlines()), 1):
        def breach(what):
            breaches.append(f"{relative}:{number}: {what}")
        if "#" in line and "include" in line:
            found = INCLUDE.match(raw.strip())
            if found and not is_test:
                target = found.group(1).split("/")[0]
                if "/" in found.group(1) and target in MAY and target not in {floor, "base"} and target not in MAY[floor]:
                    breach(f"{floor}/ includes {found.group(1)}: includes go only downward")
            if not is_test:
                system = SYSTEM_HEADER.search(raw)
                if system and floor not in {"os"}:
                    breach(f"system header outside os/: {raw.strip()}")
                standard = CPP_HEADER.match(raw.strip())
                if standard and standard.group(1) not in STANDARD | C_HEADERS and not standard.group(1).endswith("_h"):
                    breach(f"<{standard.group(1)}> needs the C++ runtime, which the library does not link")
            if floor not in KNOW_MPI and "mpi.h" in raw:
                breach("mpi.h below obj/")
            continue
        if is_test:
            continue
        word = MPI_WORD.search(line)
        if word and floor not in KNOW_MPI:
            breach(f"{word.group(0)}: MPI's words below obj/")
        call = CALL.search(line)
        if call and floor != "os":
            # A declaration or definition of our own function of that name is no call.
            before = line[:call.start()].rstrip()
            if not re.search(r"(?:\b(?:bool|void|int|Err|auto|size_t|ssize_t|int64_t|uint64_t|inline)|[*&>])$", before):
                breach(f"system call {call.group(1)}() outside os/")
        if re.search(r"\b(new|delete)\b(?!\s*;)", line) and not re.search(r"=\s*delete|operator|#|placement|new\s*\(", line):
            breach("new or delete: they need the C++ runtime")
        if len(raw) > 160:
            breach(f"line of {len(raw)} columns")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    breaches = []
    files = 0
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".cpp", ".hpp", ".h", ".inc"}:
            continue
        relative = path.relative_to(root)
        floor = relative.parts[1]
        files += 1
        if floor not in MAY:
            breaches.append(f"{relative}:1: {floor}/ is not a floor of this house")
            continue
        check_file(path, relative, floor, breaches)
    for line in breaches:
        print(line)
    print(f"layering: {files} files, {len(breaches)} breaches")
    return 1 if breaches or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
