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
EXPERIMENTS = f1-end-to-end f2-step-latency f3-producers f3-ingest-kafka f4-batch-size-kafka f5-read-latency f6-read-amplification \
              f7-manifest-growth f8-failures f9-storage c1-cost p2-turns r1-robustness p1-pareto t1-open-attempts t2-tight-retry t3-queues t4-together t5-retriers
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

# Every number, table and figure of the paper comes from the results database; stale or missing results stop the build.
PAPER       = $(BUILD)/paper
PAPER_SPECS = $(filter-out p1-pareto,$(EXPERIMENTS))

paper: ## set up, build, run the experiments if need be and typeset paper/paper.tex (FULL=1: from the full runs)
	@./setup.sh paper
	@$(MAKE) --no-print-directory -j$(JOBS) $(PROGRAM)
	@test -e $(DATABASE) || $(MAKE) --no-print-directory figures
	@mkdir -p $(PAPER)
	@$(PROGRAM) macros $(PAPER_SPECS:%=experiments/%.json) -i $(DATABASE) $(QUICK) -t paper/numbers.json \
	  $(patsubst %,-v %,$(wildcard paper/validation/*.tsv)) -o $(PAPER)/numbers.tex
	@set -e; for name in $(PAPER_SPECS); do \
	  case $$name in f8-failures|f9-storage) $(PROGRAM) series experiments/$$name.json $(QUICK) -o $(PAPER)/$$name-series.tsv ;; esac; \
	  $(PROGRAM) plot experiments/$$name.json -i $(DATABASE) -o $(PAPER) --pdf >$(PAPER)/plot.log; \
	done
	@cp paper/paper.tex $(PAPER)/
	@set -e; cd $(PAPER); for turn in 1 2 3; do \
	  pdflatex -interaction=nonstopmode -halt-on-error paper.tex >typeset.log || { grep -A6 '^!' typeset.log >&2; exit 1; }; \
	done; if grep -E 'undefined|^Overfull' paper.log >&2; then echo "paper: the lines above must be mended" >&2; exit 1; fi
	@echo "paper: $(PAPER)/paper.pdf"

check: ## set up, build, run every test: gcc, clang, sanitizers, fuzzers, a real S3 server
	@./setup.sh check
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(MAKE) --no-print-directory -j$(JOBS) all CC=clang BUILD=build/clang
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory promises
	@$(MAKE) --no-print-directory strangers
	@$(MAKE) --no-print-directory test

promises: $(PROGRAM) ## the protocol's promises in 20,000 random worlds with faults and in every order of a small one
	$(PROGRAM) fuzz --seeds 20000 -j $(JOBS)
	$(PROGRAM) explore

strangers: $(PROGRAM) ## install into an empty folder and build against it; run every command of the documents
	tests/install.sh $(BUILD)
	tests/docs.sh $(PROGRAM) docs/tutorial.md docs/results.md docs/trace.md

cluster: $(PROGRAM) ## set up a single-node Slurm; a sweep in shards under GNU parallel and a real Slurm, shards killed and taken up
	@./setup.sh cluster
	tests/cluster.sh $(PROGRAM)

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

# Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or a profile). Leave ENDPOINT out for AWS itself. Takes a quarter of
# an hour: leave the machine alone meanwhile, what else it does is measured too.
validate-s3: $(PROGRAM) $(RUNNER) ## conformance, calibration and validation on a given S3 store: ENDPOINT=http://HOST:PORT BUCKET=NAME
	@test -n "$(BUCKET)" || { echo "validate-s3: give BUCKET=name and, unless it is AWS, ENDPOINT=http://host:port" >&2; exit 2; }
	@mkdir -p results/figures
	AWS_ENDPOINT_URL="$(ENDPOINT)" LAKESTREAM_STORE="s3://$(BUCKET)/lakestream-conformance" $(RUNNER) given_store
	AWS_ENDPOINT_URL="$(ENDPOINT)" $(PROGRAM) calibrate --backend "s3://$(BUCKET)/lakestream-calibration" \
	  -o results/$(BUCKET)-model.json -p experiments/plots
	AWS_ENDPOINT_URL="$(ENDPOINT)" $(PROGRAM) validate experiments/v1-policies.json --backend "s3://$(BUCKET)/lakestream-validation" \
	  -m results/$(BUCKET)-model.json -o results/$(BUCKET)-validation.db -p experiments/plots --markdown

# The library for others: the four lower floors, position-independent, exporting what the public headers declare and nothing else.
# One header a module; the ABI number (soname) rises with every change that a program built before would notice.
VERSION = $(shell sed -n 's/^\#define LS_VERSION "\(.*\)"/\1/p' experiments/version.h)
ABI     = 0
PUBLIC_HEADERS = $(addprefix manifest/,base.h random.h key.h manifest.h codec.h tgb.h crc32c.h exchange.h commit_view.h protocol.h \
    discovery.h producer.h consumer.h checkpoint.h reclaimer.h invariants.h driver.h) \
  $(addprefix policies/,policy.h common.h plugin.h) $(addprefix sim/,scenario.h option.h law.h faults.h store_config.h metrics.h) \
  $(addprefix backend/,store.h loop.h)
PIC_OBJECTS = $(patsubst %.c,$(BUILD)/pic/%.o,$(wildcard manifest/*.c policies/*.c sim/*.c backend/*.c))
SHARED      = $(BUILD)/lib/liblakestream.so.$(VERSION)

$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -fPIC -fno-semantic-interposition -MMD -MP -c -o $@ $<

$(BUILD)/lib/liblakestream.a: $(PIC_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcs $@ $^

# Exported: what the objects define and a public header names.
$(BUILD)/lib/exports.map: $(PIC_OBJECTS) $(PUBLIC_HEADERS)
	@mkdir -p $(@D)
	@nm -g --defined-only $(PIC_OBJECTS) | awk 'NF == 3 && $$3 ~ /^ls_/ { print $$3 }' | sort -u >$(BUILD)/lib/defined
	@grep -oh 'ls_[a-z0-9_]*' $(PUBLIC_HEADERS) | sort -u >$(BUILD)/lib/named
	@{ echo 'LAKESTREAM_$(ABI) { global:'; comm -12 $(BUILD)/lib/defined $(BUILD)/lib/named | sed 's/$$/;/'; echo 'local: *; };'; } >$@

$(SHARED): $(PIC_OBJECTS) $(BUILD)/lib/exports.map
	@echo "link $@"
	@$(CC) $(SANITIZE) -shared -Wl,-soname,liblakestream.so.$(ABI) -Wl,--version-script,$(BUILD)/lib/exports.map -o $@ $(PIC_OBJECTS) $(LDLIBS)

libraries: $(SHARED) $(BUILD)/lib/liblakestream.a ## the library, shared and static, with the public headers' functions

INSTALL_SHARE = $(DESTDIR)$(PREFIX)/share

install: $(PROGRAM) libraries ## install program, library, headers and manual to $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(INSTALL_SHARE)/lakestream/experiments/plots \
	  $(INSTALL_SHARE)/man/man1 $(INSTALL_SHARE)/bash-completion/completions $(INSTALL_SHARE)/zsh/site-functions
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/lakestream
	install -m 644 experiments/*.json $(INSTALL_SHARE)/lakestream/experiments
	install -m 644 experiments/plots/*.gp $(INSTALL_SHARE)/lakestream/experiments/plots
	install -m 644 $(BUILD)/lib/liblakestream.a $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(SHARED) $(DESTDIR)$(PREFIX)/lib
	ln -sf liblakestream.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/liblakestream.so.$(ABI)
	ln -sf liblakestream.so.$(ABI) $(DESTDIR)$(PREFIX)/lib/liblakestream.so
	for header in $(PUBLIC_HEADERS); do \
	  install -D -m 644 $$header $(DESTDIR)$(PREFIX)/include/lakestream/$$header || exit 1; done
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include/lakestream' '' 'Name: lakestream' \
	  'Description: commit protocols on object stores: protocol machines, policies, simulator, stores' 'Version: $(VERSION)' \
	  'Requires.private: libcurl gsl expat libcrypto' 'Libs: -L$${libdir} -llakestream' 'Libs.private: -lm' 'Cflags: -I$${includedir}' \
	  >$(DESTDIR)$(PREFIX)/lib/pkgconfig/lakestream.pc
	$(PROGRAM) man >$(INSTALL_SHARE)/man/man1/lakestream.1
	$(PROGRAM) completion bash >$(INSTALL_SHARE)/bash-completion/completions/lakestream
	$(PROGRAM) completion zsh >$(INSTALL_SHARE)/zsh/site-functions/_lakestream

-include $(OBJECTS:.o=.d) $(PIC_OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(BENCH_OBJECTS:.o=.d) $(BUILD)/experiments/main.d

clean: ## remove everything built
	rm -rf build

.PHONY: help setup all library libraries strangers test figures paper check asan tsan tidy promises cluster mutants bench fuzz validate-s3 install clean
