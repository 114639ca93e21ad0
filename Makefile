# Every command there is; `make help` lists them.
# Objects go to $(BUILD), nothing is written beside the sources. Variants (asan, tsan, clang) build in folders of their own.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= gcc
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)

WARNINGS = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
OPTIMISE ?= -O2 -g
SANITIZE ?=
PACKAGES = libcurl sqlite3 gsl libcjson expat libcrypto
CFLAGS   = -std=c17 $(WARNINGS) $(OPTIMISE) $(SANITIZE) -D_GNU_SOURCE -I. -fno-math-errno $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
LDLIBS   = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lm

FLOORS   = manifest policies sim backend experiments
SOURCES  = $(filter-out experiments/main.c,$(wildcard $(addsuffix /*.c,$(FLOORS))))
OBJECTS  = $(SOURCES:%.c=$(BUILD)/%.o)
TESTS    = $(wildcard tests/*.c tests/explore/*.c tests/faults/*.c)
TEST_OBJECTS = $(TESTS:%.c=$(BUILD)/%.o)
BENCHES  = $(wildcard tests/bench/*.c)
BENCH_OBJECTS = $(BENCHES:%.c=$(BUILD)/%.o)
FUZZERS  = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

LIBRARY  = $(BUILD)/liblakestream.a
PROGRAM  = $(BUILD)/lakestream
RUNNER   = $(BUILD)/run-tests
BENCH    = $(BUILD)/run-bench

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing (Debian, Ubuntu), or name it
	@./setup.sh build

all: $(PROGRAM) $(RUNNER) $(BENCH) ## build the program, the tests and the benchmarks

$(LIBRARY): $(OBJECTS)
	@rm -f $@
	ar rcs $@ $^

$(PROGRAM): $(BUILD)/experiments/main.o $(LIBRARY)
	$(CC) $(SANITIZE) -o $@ $^ $(LDLIBS)

$(RUNNER): $(TEST_OBJECTS) $(LIBRARY)
	$(CC) $(SANITIZE) -o $@ $^ -lcunit $(LDLIBS)

$(BENCH): $(BENCH_OBJECTS) $(LIBRARY)
	$(CC) $(SANITIZE) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

test: $(RUNNER) $(PROGRAM) ## run the test suites (SUITE=name runs one)
	LAKESTREAM=$(PROGRAM) $(RUNNER) $(SUITE)

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(BENCH_OBJECTS:.o=.d) $(BUILD)/experiments/main.d

clean: ## remove everything built
	rm -rf build build-*

.PHONY: help setup all test clean
