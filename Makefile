# The short commands; the build itself is CMake's (see CMakePresets.json).
#
#   make                  builds into build/
#   make test             builds and runs every test
#   make demo [PEERS=1]   two ranks, a table and a picture; PEERS=1 installs other MPI libraries to compare with
#   make install PREFIX=/usr/local      make uninstall PREFIX=/usr/local
#   make asan | tsan      the same tests under the sanitizers
#   make ci [PARTS="release wires heap clang single address thread"] [SHARE=n]    what continuous integration runs, or parts of it
#   make wheel | deb      packs the build for pip or for Debian, into dist/
#   make conformance [SHARED_HEAP=1]         mpi4py's own suite; SHARED_HEAP=1: with mpiexec --shared-heap
#   make apps [TIME=1] [SHARED_HEAP=1]       real programs on Weft and on other MPI libraries: fetched, built, compared; TIME=1 also measures
#   make reproduction     what docs/reproduction reports but for application studies, with pictures, into build/reproduction: over an hour
#   make deps             names the Debian packages that are missing

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
PEERS  ?= 0
PARTS  ?=
SHARE  ?=
TIME   ?= 0
SHARED_HEAP ?= 0
heap_option := $(if $(filter-out 0,$(SHARED_HEAP)),--shared-heap)
# Extra arguments, e.g. `make test CTEST="-R mpi"`.
CTEST  ?=
CMAKE_ARGS ?=
PYTHON ?= python3

.PHONY: all build configure deps test demo bars install uninstall asan tsan ci conformance apps reproduction peers wheel deb clean

all: build

deps:
	@sh tests/deps.sh

$(BUILD)/build.ninja: | deps
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_ARGS)

configure: $(BUILD)/build.ninja

build: configure
	cmake --build $(BUILD) -j $(JOBS)

test: build
	ctest --test-dir $(BUILD) --output-on-failure $(CTEST)

demo: build
ifneq ($(PEERS),0)
	sh bench/peers.sh
endif
	$(PYTHON) bench/demo.py --build-dir $(BUILD)

peers: deps
	sh bench/peers.sh

bars: build
	$(BUILD)/bin/weft bench bars

asan tsan: deps
	cmake --preset $@ $(CMAKE_ARGS)
	cmake --build build-$@ -j $(JOBS)
	ctest --test-dir build-$@ --output-on-failure $(CTEST)

ci:
	@JOBS=$(JOBS) bash .ci/run $(if $(SHARE),--share $(SHARE)) $(PARTS)

conformance: build
	$(PYTHON) tests/apps/mpi4py.py conformance --build-dir $(BUILD) $(heap_option)

# Not part of `make test`: it fetches 80 MB from Debian and PyPI and compiles for minutes.
apps: build
	nice $(PYTHON) -B tests/apps/programs.py all --build-dir $(BUILD) --jobs $(JOBS) $(heap_option)
ifneq ($(TIME),0)
	$(PYTHON) -B tests/apps/programs.py time --build-dir $(BUILD) $(heap_option)
	$(PYTHON) -B tests/apps/programs.py time --build-dir $(BUILD) $(heap_option) --hogs
endif

reproduction: build
	$(BUILD)/bin/weft bench heap --apps fft2d,lj,opbench,halo,pipe,pool,assist,pollution --caches --out $(BUILD)/reproduction
	$(BUILD)/bin/weft bench heap --apps fft2d,lj,opbench,pipe --allocators --out $(BUILD)/reproduction/allocators
	$(BUILD)/bin/weft bench heap --apps assist --sweep WEFT_MAPPED_BLOCK=4096,8192,16384,32768 --out $(BUILD)/reproduction/blocks
	$(BUILD)/bin/weft tune --heap --out $(BUILD)/reproduction/tuned.conf
	$(BUILD)/bin/weft count --report $(BUILD)/reproduction/critical-path
	for group in heap hmpi ownership malloc; do $(BUILD)/bin/weft bench bars --group $$group --out $(BUILD)/reproduction/$$group.json || exit; done
	$(BUILD)/bin/weft bench figures --out $(BUILD)/reproduction/partitioned --report $(BUILD)/reproduction/partitioned.md
	$(BUILD)/bench/weft-bench-hmpi rate -n 8
	$(BUILD)/bench/weft-bench-hmpi kill -n 8 -r 20

install: build
	cmake --install $(BUILD) --prefix "$(PREFIX)"

# Removes what the last install into PREFIX wrote, by the list CMake kept.
uninstall:
	@sh cmake/uninstall.sh "$(BUILD)/install_manifest.txt" "$(PREFIX)"

# Into dist/.
wheel deb: build
	$(PYTHON) packaging/$@.py --build-dir $(BUILD)

clean:
	cmake -E rm -rf $(BUILD) build-asan build-tsan build-single build-clang
