# SPDX-License-Identifier: MIT
#
# The front door: each target installs the Debian packages that it misses, then
# runs Meson and Ninja. `make help` lists the targets.

BUILD	?= build
DIR	?= /usr
PREFIX	?= /usr/local
# Further options of `meson setup`, -Dwerror=true say.
MESON_FLAGS ?=
# Options of scripts/run-tests and of kmem-bench.
TEST_FLAGS ?=
BENCH_FLAGS ?=

checks	:= layers headers symbols limits fastpath docs
# A test program may be slower under a sanitizer or an emulator.
slow	:= --timeout-multiplier 6

.PHONY: all help run test test-programs stress bench install clean asan tsan clang arm64 \
	check $(checks:%=check-%) deps-build
.DEFAULT_GOAL := all

## make: build everything into build/
all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

deps-build:
	@scripts/install-deps build test

$(BUILD)/build.ninja: | deps-build
	meson setup --prefix $(PREFIX) $(MESON_FLAGS) $(BUILD)

## make run [DIR=/path]: a directory tree in memory, deleted under readers by kfree_rcu
run: all
	$(BUILD)/examples/dirtree $(DIR)

## make test: every test, ending in "N passed, N failed"
test: all
	scripts/run-tests -C $(BUILD) $(TEST_FLAGS)

## make stress: the long form of the stress tests
stress: all
	scripts/run-tests -C $(BUILD) --setup long --suite stress $(TEST_FLAGS)

## make test-programs: redis, postgres, node, nginx, stress-ng ... on libkmem-malloc
test-programs: all
	@scripts/install-deps programs
	scripts/run-tests -C $(BUILD) --setup programs --suite programs $(TEST_FLAGS)

## make bench [QUICK=1]: kmem-bench against the other allocators, into bench/results,
##	with tables, plots, bench/results/README.md and the table in README.md
bench: RESULTS = bench/results/$(shell $(BUILD)/bench/kmem-bench --machine)
bench: all
	@scripts/install-deps bench
	$(BUILD)/bench/kmem-bench --results bench/results $(if $(QUICK),--quick) $(BENCH_FLAGS)
	scripts/results-table $(RESULTS)
	scripts/results-plots $(RESULTS)

## make install [PREFIX=/usr/local DESTDIR=]: libraries, headers, pkg-config file
install: all
	meson configure --prefix $(PREFIX) $(BUILD)
	meson install -C $(BUILD)

## make check: all of the following
check: $(checks:%=check-%)

## make check-layers: no file includes or calls what lies above its layer
## make check-headers: each public header alone, as C11 and C++17
## make check-symbols: exports, map file and headers name the same functions
## make check-limits: sizes of functions and files
## make check-fastpath: instructions of alloc and free against the reviewed table
## make check-docs: options, counters, functions and links in the documentation
$(checks:%=check-%): check-%: all
	@scripts/install-deps check
	scripts/check-$* $(BUILD)

## make asan, make tsan: the tests under AddressSanitizer and UBSan, ThreadSanitizer
asan: deps-build
	test -f build-asan/build.ninja || \
		meson setup -Db_sanitize=address,undefined $(MESON_FLAGS) build-asan
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		scripts/run-tests -C build-asan $(slow) $(TEST_FLAGS)

tsan: deps-build
	test -f build-tsan/build.ninja || \
		meson setup -Db_sanitize=thread $(MESON_FLAGS) build-tsan
	scripts/run-tests -C build-tsan $(slow) $(TEST_FLAGS)

## make clang: build with clang and run the tests
clang: deps-build
	@scripts/install-deps clang
	test -f build-clang/build.ninja || \
		CC=clang meson setup $(MESON_FLAGS) build-clang
	scripts/run-tests -C build-clang $(TEST_FLAGS)

## make arm64: cross build, and under qemu the tests that run one program each
arm64: deps-build
	@scripts/install-deps arm64
	test -f build-arm64/build.ninja || \
		meson setup --cross-file scripts/arm64.ini $(MESON_FLAGS) build-arm64
	scripts/run-tests -C build-arm64 $(slow) --suite client --suite death \
		--suite examples $(TEST_FLAGS)

## make clean: remove the build directories
clean:
	rm -rf build build-asan build-tsan build-clang build-arm64

help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))
