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
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing (Debian, Ubuntu), or name it
	@./setup.sh build

all: $(PROGRAM) $(RUNNER) $(BENCH) ## build the program, the tests and the benchmarks

$(LIBRARY): $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

# Plug-ins call the program's own functions: all of the library goes in, and its names are exported.
$(PROGRAM): $(BUILD)/experiments/main.o $(LIBRARY)
	@echo "link $@"
	@$(CC) $(SANITIZE) -rdynamic -o $@ $< -Wl,--whole-archive $(LIBRARY) -Wl,--no-whole-archive $(LDLIBS)

$(RUNNER): $(TEST_OBJECTS) $(LIBRARY)
	@echo "link $@"
	@$(CC) $(SANITIZE) -o $@ $^ -lcunit $(LDLIBS)

$(BENCH): $(BENCH_OBJECTS) $(LIBRARY)
	@echo "link $@"
	@$(CC) $(SANITIZE) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/experiments/report_assets.o: experiments/report.css experiments/report.js

library: $(LIBRARY)

PLUGINS = $(patsubst tests/plugins/%.c,$(BUILD)/plugins/%.so,$(wildcard tests/plugins/*.c)) $(BUILD)/plugins/courteous.so

$(BUILD)/plugins/%.so: tests/plugins/%.c policies/plugin.h policies/policy.h manifest/commit_view.h
	@mkdir -p $(@D)
	@$(CC) -std=c17 -O1 -I. -shared -fPIC -o $@ $<

$(BUILD)/plugins/%.so: examples/policy/%.c policies/plugin.h policies/policy.h manifest/commit_view.h
	@mkdir -p $(@D)
	@$(CC) -std=c17 -O1 -I. -shared -fPIC -o $@ $<

test: $(RUNNER) $(PROGRAM) $(PLUGINS) ## run the test suites (SUITE=name runs one)
	LAKESTREAM=$(PROGRAM) LAKESTREAM_PLUGINS=$(BUILD)/plugins $(RUNNER) $(SUITE)

# The quick set takes at most three minutes on two cores; FULL=1 runs every experiment whole.
EXPERIMENTS = f1-end-to-end f2-step-latency f7-manifest-growth f3-producers f6-read-amplification f8-failures f9-storage c1-cost t1-open-attempts t2-tight-retry t3-queues t4-together t5-retriers
STUDIES  = f1-end-to-end f7-manifest-growth
QUICK    = $(if $(FULL),,--quick)
DATABASE = results/figures$(if $(FULL),-full,).db

figures: ## set up, build, run the experiments and draw them (FULL=1: the whole of each)
	@./setup.sh build
	@$(MAKE) --no-print-directory -j$(JOBS) $(PROGRAM)
	@mkdir -p results/figures
	@set -e; for name in $(EXPERIMENTS); do \
	  $(PROGRAM) run experiments/$$name.json -o $(DATABASE) -j$(JOBS) $(QUICK); \
	  case $$name in f8-failures|f9-storage) $(PROGRAM) series experiments/$$name.json $(QUICK) -o results/figures/$$name-series.tsv ;; esac; \
	  $(PROGRAM) plot experiments/$$name.json -i $(DATABASE) -o results/figures; \
	done
	@set -e; for name in $(STUDIES); do $(PROGRAM) sensitivity experiments/$$name.json -o $(DATABASE) -j$(JOBS) $(QUICK); done
	@$(PROGRAM) report $(EXPERIMENTS:%=experiments/%.json) -i $(DATABASE) -o results/figures/report.html
	@echo "figures: open results/figures/report.html: every figure with its question and answer"
	@echo "figures: the pictures are in results/figures (SVG and PNG), the numbers in $(DATABASE)"

check: ## set up, build, run every test: gcc, clang, sanitizers, fuzzers, a real S3 server
	@./setup.sh check
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(MAKE) --no-print-directory -j$(JOBS) all CC=clang BUILD=build/clang
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory promises
	@$(MAKE) --no-print-directory test

promises: $(PROGRAM) ## the protocol's promises in 20,000 random worlds with faults and in every order of a small one
	$(PROGRAM) fuzz --seeds 20000 -j $(JOBS)
	$(PROGRAM) explore

asan: ## the test suites under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory -j$(JOBS) test BUILD=build/asan OPTIMISE='-O1 -g' \
	  SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

tsan: ## the test suites under ThreadSanitizer
	@$(MAKE) --no-print-directory -j$(JOBS) test BUILD=build/tsan OPTIMISE='-O1 -g' SANITIZE='-fsanitize=thread'

tidy: ## clang-tidy over all sources
	clang-tidy --quiet $(SOURCES) experiments/main.c -- $(CFLAGS)

mutants: $(PROGRAM) ## plant each known bug and see the explorer find it
	tests/explore/mutants.sh $(BUILD)

bench: $(BENCH) $(PROGRAM) ## measure speed, with peers and limits beside it (NAME=... runs one)
	LAKESTREAM=$(PROGRAM) $(BENCH) $(NAME)

# Each decoder's fuzzer runs FUZZ_SECONDS from the corpus kept in build/fuzz; a crash leaves its input there and fails.
FUZZ_SECONDS ?= 60
FUZZ_CHECKS   = address,undefined -fno-sanitize-recover=all

fuzz: ## run each decoder's fuzzer for FUZZ_SECONDS (60)
	@$(MAKE) --no-print-directory -s -j$(JOBS) library BUILD=build/fuzz CC=clang OPTIMISE='-O1 -g' \
	  SANITIZE='-fsanitize=fuzzer-no-link,$(FUZZ_CHECKS)'
	@set -e; for name in $(FUZZERS); do mkdir -p build/fuzz/$$name.corpus; \
	  clang -std=c17 -O1 -g -D_GNU_SOURCE -I. $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null) \
	    -fsanitize=fuzzer,$(FUZZ_CHECKS) -o build/fuzz/$$name tests/fuzz/$$name.c build/fuzz/liblakestream.a $(LDLIBS); done
	@set -e; pids=; for name in $(FUZZERS); do \
	  (cd build/fuzz && ./$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	     $$name.corpus >$$name.log 2>&1) & pids="$$pids $$!:$$name"; \
	done; failed=0; for each in $$pids; do \
	  if wait $${each%%:*}; then echo "fuzz: $${each##*:} clean," \
	       "$$(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/$${each##*:}.log) inputs"; \
	  else echo "fuzz: $${each##*:} FAILED, see build/fuzz/$${each##*:}.log"; tail -n 40 build/fuzz/$${each##*:}.log; failed=1; fi; \
	done; exit $$failed

# Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or a profile). Leave ENDPOINT out for AWS itself.
validate-s3: $(PROGRAM) $(RUNNER) ## conformance and a real run on a given S3 store: ENDPOINT=http://HOST:PORT BUCKET=NAME
	@test -n "$(BUCKET)" || { echo "validate-s3: give BUCKET=name and, unless it is AWS, ENDPOINT=http://host:port" >&2; exit 2; }
	@mkdir -p results
	AWS_ENDPOINT_URL="$(ENDPOINT)" LAKESTREAM_STORE="s3://$(BUCKET)/lakestream-conformance" $(RUNNER) given_store
	AWS_ENDPOINT_URL="$(ENDPOINT)" $(PROGRAM) run experiments/v1-policies.json -o results/$(BUCKET).db \
	  --backend "s3://$(BUCKET)/lakestream-validation"
	$(PROGRAM) compare results/$(BUCKET).db

install: $(PROGRAM) ## install to $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/lakestream/experiments/plots
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/lakestream
	install -m 644 experiments/*.json $(DESTDIR)$(PREFIX)/share/lakestream/experiments
	install -m 644 experiments/plots/*.gp $(DESTDIR)$(PREFIX)/share/lakestream/experiments/plots

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(BENCH_OBJECTS:.o=.d) $(BUILD)/experiments/main.d

clean: ## remove everything built
	rm -rf build

.PHONY: help setup all library test figures check asan tsan tidy promises mutants bench fuzz validate-s3 install clean
