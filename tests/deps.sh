#!/bin/sh
# deps.sh [PACKAGE ...]: installs the Debian packages that the build and the tests need and that are not here, and those
# named (continuous integration adds clang); without root it names them and stops with the command to give.
packages="g++ make cmake ninja-build libgtest-dev libhwloc-dev valgrind python3 python3-dev python3-venv python3-clang pkg-config $*"

missing=""
for package in $packages; do
    case $package in
        g++|make|cmake|valgrind|python3|pkg-config) command -v "$package" >/dev/null 2>&1 && continue ;;
        ninja-build) command -v ninja >/dev/null 2>&1 && continue ;;
        libgtest-dev) [ -e /usr/include/gtest/gtest.h ] && continue ;;
        libhwloc-dev) [ -e /usr/include/hwloc.h ] && continue ;;
        clang) command -v clang++ >/dev/null 2>&1 && continue ;;
        python3-venv) python3 -c 'import venv, ensurepip' >/dev/null 2>&1 && continue ;;
        python3-clang) PYTHONPATH="$PYTHONPATH:/usr/lib/python3/dist-packages" python3 -c 'from clang.cindex import Index
Index.create()' >/dev/null 2>&1 && continue ;;
        python3-dev) python3 -c 'import os, sysconfig, sys
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' >/dev/null 2>&1 && continue ;;
    esac
    missing="$missing $package"
done
[ -z "$missing" ] && exec sh "$(dirname "$0")/../cmake/mimalloc.sh"

if ! command -v apt-get >/dev/null 2>&1; then
    echo "weft: needed and not found:$missing (Debian's names; README.md has other distributions')" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    echo "weft: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing && exec sh "$(dirname "$0")/../cmake/mimalloc.sh"
else
    echo "weft: these packages are missing:$missing" >&2
    echo "weft: install them with" >&2
    echo "    sudo apt-get install$missing" >&2
    exit 1
fi
