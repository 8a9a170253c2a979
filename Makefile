# The newcomer's two commands are `make run` and `make test`; both do their own set-up.

CARGO ?= cargo
BIN   := target/release/plimsoll
# What tests and benchmarks need from Debian or Ubuntu: a program, and the package that has it.
TEST_TOOLS  := chromium:chromium nginx:nginx-light openssl:openssl curl:curl jq:jq javac:default-jdk-headless mvn:maven pg_createcluster:postgresql bash:bash zsh:zsh fish:fish man:man-db groff:groff taskset:util-linux readelf:binutils git:git shellcheck:shellcheck systemd-analyze:systemd
BENCH_TOOLS := chromium:chromium nginx:nginx-light wrk:wrk h2load:nghttp2-client ab:apache2-utils curl:curl python3:python3 javac:default-jdk-headless mvn:maven
# What a release and its check need, beside zig, cargo-zigbuild and cargo-auditable, which it installs into target/dist-tools.
DIST_TOOLS  := python3:python3-venv cc:gcc readelf:binutils git:git
CHECK_TOOLS := $(DIST_TOOLS) skopeo:skopeo umoci:umoci dpkg:dpkg rpm:rpm zsh:zsh fish:fish man:man-db groff:groff unshare:util-linux curl:curl

.PHONY: all build run test test-fast test-engines test-long test-release check package install-check bench seek-table zoo history-zoo sabotage figures golden schema clean test-tools bench-tools bench-against bench-gate ab-zoo ab-late-zoo interval-zoo sizing-zoo ab-sockets simulate fuzz fuzz-corpus dist dist-check dist-against flood loaded soak slow-clients disk fleet-simulate fleet-scale

all: build

build:
	$(CARGO) build --release --locked

run: build
	$(BIN) run quickstart

# The tests of the program wait for their share of the machine themselves (tests/machine.rs). Those that want it quiet wait longest,
# about a hundred of them: with no more threads than that, few would be left for the others.
test: export RUST_TEST_THREADS ?= 256
test: test-tools
	@CARGO=$(CARGO) ./.ci/tests

# The crates alone: no server process, no Java, no downloads. Examples in comments, which are compiled again each time, are left to
# `make test`.
test-fast:
	$(CARGO) test --locked --workspace --exclude plimsoll --lib --bins --tests
	$(CARGO) test --locked --package plimsoll --lib

# Everything with real engines, Elasticsearch 7.10.2 too, which `make test` leaves out: another 31 MB of jars.
test-engines: test-tools
	$(CARGO) test --locked --package plimsoll --test all -- engines:: --include-ignored

# Tests that the others leave out because they take long: the zoo's committed lines against long simulations, and a query file of
# 1 GB. About two minutes.
test-long:
	$(CARGO) test --release --locked --package plimsoll-zoo -- --ignored --test-threads 2
	$(CARGO) test --release --locked --package plimsoll-workloads -- --ignored gigabyte

# The tests of the program against its release build, the one that users have. Debug builds check more, libraries do some things
# differently in them, and `make test` uses no other.
test-release: export RUST_TEST_THREADS ?= 256
test-release: test-tools
	$(CARGO) test --release --locked --no-fail-fast --package plimsoll --package plimsoll-agent --lib --tests

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

# The package of each published crate, built from the package alone; prints their sizes. Needs python3; builds everything once more.
package:
	@CARGO=$(CARGO) ./.ci/package

# `cargo install --path`, and the installed program used from an empty folder.
install-check:
	@CARGO=$(CARGO) ./.ci/install-check $(INSTALL)

# Peers side by side, alternating, at least five rounds; prints ratios. See docs/performance.md.
bench: build bench-tools
	$(CARGO) bench --locked --package plimsoll --bench peers

# Another commit beside this checkout, by default the one before it: CPU time of each operation, with an answer for each row.
# NOW=COMMIT compares another commit than this checkout. Builds what is missing; about ten minutes, and five for a build.
bench-against:
	@./.ci/tools pg_createcluster:postgresql
	@CARGO=$(CARGO) ./bench/against/run $(or $(REF),HEAD~1) $(if $(NOW),--now $(NOW)) $(if $(SCENES),--scenes $(SCENES))

# The same; fails if a row is worse.
bench-gate:
	@./.ci/tools pg_createcluster:postgresql
	@CARGO=$(CARGO) ./bench/against/run $(or $(REF),HEAD~1) --gate $(if $(NOW),--now $(NOW)) $(if $(SCENES),--scenes $(SCENES))

# The search for the load line on plants whose line is known, rivals beside it; about ten minutes. See docs/seek.md.
zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- $(or $(SEEDS),1000)

# Error rates of the change points of a history, on series of runs whose changes are known; a minute. Writes its tables into
# docs/change-points.md.
history-zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- history --page docs/change-points.md

# Error rates of comparisons by pairs of blocks, on virtual time, rivals beside them; about twenty minutes. Writes its tables into
# docs/ab-error-rates.md.
ab-zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- ab $(or $(SESSIONS),1000) --page docs/ab-error-rates.md

# The same where the generator is late, by chance or on one side more; about half an hour on two cores.
ab-late-zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- ab $(or $(SESSIONS),1000) --late --page docs/ab-error-rates.md

# How often the interval of a percentile of one run holds the true one, on virtual time; about half an hour on two cores. Writes
# its table into docs/intervals.md.
interval-zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- intervals $(or $(RUNS),500) --page docs/intervals.md

# How often the prediction intervals of `size` hold, 500 draws of each truth; about five minutes. Writes its tables into
# docs/sizing.md.
sizing-zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- sizing $(or $(DRAWS),500) --page docs/sizing.md

# The search for the load line on real sockets, ten searches of each line; about two hours. Writes its tables into docs/seek.md.
seek-table: build bench-tools
	$(CARGO) bench --locked --package plimsoll --bench peers -- --only lines,program-lines --rounds 10 --seconds 120 --write $(CURDIR)/docs/seek.md

# Comparisons of equal sides, of a planted difference and of a limited generator on real sockets, one after the other: three hours on
# a machine that does nothing else. ROW=ab-queue, ab-nginx, ab-slower or ab-limited makes one of them, with BUDGET_S seconds for each
# comparison. Writes into docs/ab.md.
ab-sockets: ROW ?= ab-queue,ab-nginx,ab-slower,ab-limited
ab-sockets: build bench-tools
	$(CARGO) bench --locked --package plimsoll --bench peers -- --only $(ROW) --rounds $(or $(SESSIONS),20) --seconds $(or $(BUDGET_S),180) --write $(CURDIR)/docs/ab.md

# The files of a release, in target/dist: archive, .deb, .rpm, container image, bill of materials, checksums. See docs/install.md.
# TARGET=aarch64-unknown-linux-gnu builds for that processor. About ten minutes on two cores.
dist:
	@./.ci/tools $(DIST_TOOLS)
	$(if $(TARGET),@./.ci/foreign $(TARGET))
	$(CARGO) run --release --locked --package plimsoll-dist -- make $(if $(TARGET),--target $(TARGET))

# Builds the release once more in another folder, compares every byte, and tries every file of it: as root, in throw-away roots.
# ONLY=deb,image carries out those checks only.
dist-check:
	@./.ci/tools $(CHECK_TOOLS)
	@[ -f /usr/share/bash-completion/bash_completion ] || ./.ci/tools bash_completion:bash-completion
	$(CARGO) run --release --locked --package plimsoll-dist -- check $(if $(TARGET),--target $(TARGET)) $(if $(ONLY),--only $(ONLY))

# CPU time of each operation, of the release's binary beside `cargo build --release`, in turn; fails if a row is worse. About ten
# minutes on a machine that does nothing else. LINKED=static takes the binary of the container image.
dist-against: build
	@./.ci/tools pg_createcluster:postgresql
	$(CARGO) bench --locked --package plimsoll --bench peers -- --only against --gate \
		--before $(CURDIR)/$(BIN) --before-name release --now-name dist $(if $(SCENES),--scenes $(SCENES)) \
		--plimsoll $(CURDIR)/target/dist-build/$(or $(LINKED),shared)/$(or $(TARGET),x86_64-unknown-linux-gnu)/dist/plimsoll

# What plimsoll says about itself while one thing is wrong, on real sockets and in virtual time; about twelve minutes on a
# machine that does nothing else. Writes its table into docs/verdicts.md. As root also quotas, few ports, and disks.
sabotage: build
	$(CARGO) run --release --locked --package plimsoll-sabotage -- all --page docs/verdicts.md

# 10,000 simulated runs of a fleet with faults of the bus, of agents and of clocks (SEEDS=...); a few minutes. See docs/fleet.md.
fleet-simulate: export PLIMSOLL_FLEET_SEEDS = $(or $(SEEDS),10000)
fleet-simulate: export MALLOC_MMAP_THRESHOLD_ ?= 1000000000
fleet-simulate: export MALLOC_TRIM_THRESHOLD_ ?= 1000000000
fleet-simulate:
	$(CARGO) test --release --locked --package plimsoll-fleet --test simulated -- --nocapture

# A coordinator beside 10 to 10,000 simulated agents over a real nats-server (AGENTS='10 100'); five minutes on a quiet machine. Writes
# its table into docs/scale.md.
fleet-scale: test-tools
	$(CARGO) run --release --locked --package plimsoll-fleet --example scale -- table docs/scale.md $(or $(AGENTS),10 100 300 1000 2000 3000 5000 10000)

# The engine, its codecs and its sessions on virtual time against peers that fail on purpose: SEEDS runs of each part. Writes its
# tables into docs/reliability.md if all parts are run. PART=http2 runs one part, FROM=1000 begins at that seed, and PART=http2
# TRACE=4711 prints one run.
# glibc would give the memory of each histogram back at once, which takes as long as the runs.
simulate: export MALLOC_MMAP_THRESHOLD_ ?= 1000000000
simulate: export MALLOC_TRIM_THRESHOLD_ ?= 1000000000
simulate:
	nice -n 19 $(CARGO) run --release --locked --package plimsoll-simulate -- --seeds $(or $(SEEDS),10000) --from $(or $(FROM),0) $(if $(PART),--part $(PART)) $(if $(TRACE),--trace $(TRACE)) $(if $(PART),,--page docs/reliability.md --commit $$(git rev-parse --short HEAD))
# Every reader of foreign bytes under libFuzzer, MINUTES of all targets together or INPUTS of each, or both. Exit code 1 if there is a
# finding. TARGET=NAME is one of them; without it, the table goes into docs/reliability.md. SANITIZER=address: with AddressSanitizer.
FUZZ_FLAGS = $(if $(MINUTES),--minutes $(MINUTES)) $(if $(INPUTS),--inputs $(INPUTS)) $(if $(TARGET),--target $(TARGET)) \
	$(if $(SANITIZER),--sanitizer $(SANITIZER))
fuzz:
	@./.ci/tools c++:g++
	$(CARGO) run --locked --package plimsoll-fuzzing -- run $(FUZZ_FLAGS) $(if $(TARGET),,--page docs/reliability.md)

# Keeps the smallest inputs that reach all that was reached, in fuzz/corpus.
fuzz-corpus:
	$(CARGO) run --locked --package plimsoll-fuzzing -- corpus $(if $(TARGET),--target $(TARGET))
# Hostile servers that plimsoll meets, and floods of its own servers with 10,000 connections: memory, time, and whether honest
# clients are served. About twenty minutes; writes its tables into docs/reliability.md.
flood: build
	PLIMSOLL=$(BIN) $(CARGO) run --release --locked --package plimsoll-hostile -- all --page docs/reliability.md $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH))
# The stores on a simulated disk that loses, tears and reorders what was not synced, and fails with EIO and ENOSPC: SEEDS seeds for each
# operation; about twenty minutes each. Writes its table into docs/reliability.md.
DISK_ROWS := $(CURDIR)/target/disk.rows
disk: export PLIMSOLL_DISK_SEEDS = $(or $(SEEDS),5)
disk: export PLIMSOLL_DISK_ROWS = $(DISK_ROWS)
disk:
	rm -f $(DISK_ROWS)
	nice -n 19 $(CARGO) test --release --locked --package plimsoll-report --package plimsoll-search --package plimsoll-voterdb \
		--package plimsoll-elastic --package plimsoll-vespa --lib -- lying_disk::
	$(CARGO) run --release --locked --package plimsoll-disk --example page -- $(DISK_ROWS) docs/reliability.md $(PLIMSOLL_DISK_SEEDS)

# What plimsoll says about itself on a loaded machine: busy neighbours, quotas, stolen time, stepped and suspended clocks, each
# judged by an observer of arrivals; about six minutes on a machine that does nothing else. Writes its table into
# docs/reliability.md. As root also quotas and frozen processes.
loaded: build
	@./.ci/tools cc:gcc
	$(CARGO) run --release --locked --package plimsoll-sabotage -- loaded --page docs/reliability.md

# A long run over TLS with reconnects and failures: is memory flat, and lag, and are descriptors? Exit code 1 if something grows.
# Writes its table into docs/reliability.md. PLANT=leak-bytes=1024 shows that it can fail.
soak: build
	$(CARGO) run --release --locked --package plimsoll-sabotage -- soak --minutes $(or $(MINUTES),120) --rate $(or $(RATE),20000) $(if $(PLANT),--plant $(PLANT),--page docs/reliability.md)

# 10,000 slow and silent clients against each embedded server, while a healthy client measures; about three minutes. Writes its
# table into docs/reliability.md.
slow-clients: build
	$(CARGO) run --release --locked --package plimsoll-sabotage -- slow --clients $(or $(CLIENTS),10000) --page docs/reliability.md

# Samples with figures in README.md and docs/, printed again by the release build, with date and machine. The tests execute the same
# commands and compare all but the figures (tests/docs). About ten minutes on a machine that does nothing else.
figures: export PLIMSOLL_FIGURES = $(CURDIR)/$(BIN)
figures: build test-tools
	$(CARGO) test --locked --package plimsoll --test all -- docs:: --test-threads 1

# Writes the expected outputs of golden tests again, for a look at the difference.
golden:
	INSTA_UPDATE=always $(CARGO) test --locked --workspace

# Writes docs/run.schema.json from the types of the record, and docs/stream.schema.json from those of the lines of --stream.
schema:
	INSTA_UPDATE=always $(CARGO) test --locked --package plimsoll-record --package plimsoll-outlets --test schema

clean:
	$(CARGO) clean

# Also the clients of Vespa, Elasticsearch, OpenSearch and VoltDB, a Prometheus, a nats-server and linters, pinned, into
# target/clients. The tests install real engines themselves, into target/engines: their jars come over the network once. Real
# documents come from the descriptions of packages that apt knows.
test-tools:
	@./.ci/tools $(TEST_TOOLS)
	@./.ci/packages
	@./.ci/clients
	@./.ci/linters

bench-tools:
	@./.ci/tools $(BENCH_TOOLS)
	@./.ci/packages long
	@./.ci/clients
