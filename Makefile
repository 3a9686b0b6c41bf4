# The front door: one word each, the work is in tools/ and meson.
#
# DESTDIR, PREFIX   where `make install` puts things      (/usr/local)
# STAGE             where `make demo` installs its copy   (/tmp/bulkhead-stage-UID)
# WERROR=1          a compiler warning is an error, as in the CI
# FUZZ_SECONDS      how long each fuzz target runs        (20)
# TESTS             names of tests, for `make test TESTS=arena`
# BUILD             build folder of `make` and `make install` (build)
# RELEASES          what `make test-vm` boots: bookworm, trixie (both)

PREFIX ?= /usr/local
STAGE ?= /tmp/bulkhead-stage-$(shell id -u)
BUILD ?= build
export WERROR FUZZ_SECONDS FUZZ_SEED DESTDIR

.PHONY: all demo test test-gpu test-vm test-vendor san fuzz bench bench-shim bench-gpu soak fmt tidy install deb clean help
.NOTPARALLEL:

all: ## build everything into build/
	@tools/bootstrap demo
	@tools/build $(BUILD)

demo: ## build, install into STAGE and show Bulkhead at work
	@tools/bootstrap demo
	@tools/stage $(STAGE)
	@tools/demo $(STAGE)

test: ## all tests; the last line counts them
	@tools/bootstrap test
	@tools/test $(TESTS)

soak: ## the tests that take long
	@tools/bootstrap test
	@tools/test --suite soak

test-vm: ## boot Debian 12 and 13, install the packages there, try them (RELEASES=)
	@tools/bootstrap vm
	@tools/test-vm $(RELEASES)

test-gpu: ## on a machine with a GPU: what needs no MIG change and no reset
	@tools/bootstrap test
	@tools/test-gpu

test-vendor: ## nvidia-smi, gpustat, nvitop, libcudart: fetched into build-vendor, tried on the simulated driver
	@tools/bootstrap test
	@tools/vendor-programs build-vendor || [ $$? -eq 77 ]
	@tools/test --suite vendor

san: ## the tests under address, undefined and thread sanitizers
	@tools/bootstrap san
	@tools/san

fuzz: ## run each fuzz target for FUZZ_SECONDS
	@tools/bootstrap fuzz
	@tools/fuzz

bench: ## run the benchmarks
	@tools/bootstrap bench
	@tools/bench

bench-shim: ## what the CUDA shim adds to calls of a driver that answers at once; HAMI=/path/libvgpu.so: and that
	@tools/bootstrap bench
	@tools/build build buildtype=debugoptimized
	@ninja -C build bench/shim_bench bench/shim_storm
	@build/bench/shim_bench $(CURDIR)/build/src/shim/libcuda.so.1 build/sim/libnullcuda.so 21 \
		$(if $(HAMI),$(HAMI) $(or $(HAMI_NVML),build/sim/libnvidia-ml.so.1))
	@build/bench/shim_storm build/sim/libnullcuda.so

bench-gpu: ## on a machine with a GPU: what shares cost and how exact they are
	@tools/bootstrap bench
	@tools/bench-gpu

fmt: ## lay out the sources with clang-format
	@tools/fmt

tidy: ## check the house's rules on the sources
	@tools/tidy --stats

install: ## install below DESTDIR and PREFIX
	@tools/bootstrap demo
	@tools/configure $(BUILD) prefix=$(PREFIX)
	@ninja -C $(BUILD)
	@meson install -C $(BUILD) --no-rebuild

deb: ## Debian packages for this machine's release, into build-deb/
	@tools/bootstrap deb
	@tools/deb

clean: ## remove what was built
	rm -rf build build-against build-san build-tsan build-fuzz build-stage build-deb build-web

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
