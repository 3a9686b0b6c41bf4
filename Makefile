# The front door: one word each, the work is in tools/ and meson.
#
# DESTDIR, PREFIX   where `make install` puts things      (/usr/local)
# STAGE             where `make demo` installs its copy   (/tmp/bulkhead-stage-UID)
# WERROR=1          a compiler warning is an error, as in the CI
# FUZZ_SECONDS      how long each fuzz target runs        (20)
# TESTS             names of tests, for `make test TESTS=arena`
# BUILD             build folder of `make` and `make install` (build)

PREFIX ?= /usr/local
STAGE ?= /tmp/bulkhead-stage-$(shell id -u)
BUILD ?= build
export WERROR FUZZ_SECONDS FUZZ_SEED DESTDIR

.PHONY: all demo test san fuzz bench soak fmt tidy install clean help
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

san: ## the tests under address, undefined and thread sanitizers
	@tools/bootstrap san
	@tools/san

fuzz: ## run each fuzz target for FUZZ_SECONDS
	@tools/bootstrap fuzz
	@tools/fuzz

bench: ## run the benchmarks
	@tools/bootstrap bench
	@tools/bench

fmt: ## lay out the sources with clang-format
	@tools/fmt

tidy: ## check the house's rules on the sources
	@tools/tidy --stats

install: ## install below DESTDIR and PREFIX
	@tools/bootstrap demo
	@tools/configure $(BUILD) prefix=$(PREFIX)
	@ninja -C $(BUILD)
	@meson install -C $(BUILD) --no-rebuild

clean: ## remove what was built
	rm -rf build build-san build-tsan build-fuzz build-stage

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
