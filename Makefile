# The newcomer's two commands are `make run` and `make test`; both do their own set-up.

CARGO ?= cargo
BIN   := target/release/plimsoll
# What tests and benchmarks need from Debian or Ubuntu: a program, and the package that has it.
TEST_TOOLS  := nginx:nginx-light openssl:openssl curl:curl jq:jq javac:default-jdk-headless mvn:maven pg_createcluster:postgresql
BENCH_TOOLS := nginx:nginx-light wrk:wrk h2load:nghttp2-client ab:apache2-utils curl:curl python3:python3 javac:default-jdk-headless mvn:maven

.PHONY: all build run test test-fast test-engines test-long check bench seek-table zoo sabotage figures golden schema clean test-tools bench-tools

all: build

build:
	$(CARGO) build --release --locked

run: build
	$(BIN) run quickstart

# The tests of the program wait for their share of the machine themselves: tests/machine.rs.
test: export RUST_TEST_THREADS ?= 64
test: test-tools
	@CARGO=$(CARGO) ./.ci/tests

# The crates alone: no server process, no Java, no downloads.
test-fast:
	$(CARGO) test --locked --workspace --exclude plimsoll
	$(CARGO) test --locked --package plimsoll --lib

# Everything with real engines, Elasticsearch 7.10.2 too, which `make test` leaves out: another 31 MB of jars.
test-engines: test-tools
	$(CARGO) test --locked --package plimsoll --test all -- engines:: --include-ignored

# Tests that the others leave out because they take long: the zoo's committed lines against long simulations, and a query file of
# 1 GB. About two minutes.
test-long:
	$(CARGO) test --release --locked --package plimsoll-zoo -- --ignored --test-threads 2
	$(CARGO) test --release --locked --package plimsoll-workloads -- --ignored gigabyte

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

# Peers side by side, alternating, at least five rounds; prints ratios. See docs/performance.md.
bench: build bench-tools
	$(CARGO) bench --locked --package plimsoll --bench peers

# The search for the load line on plants whose line is known, rivals beside it; about ten minutes. See docs/seek.md.
zoo:
	$(CARGO) run --release --locked --package plimsoll-zoo -- $(or $(SEEDS),1000)

# The same on real sockets, ten searches of each line; about two hours. Writes its tables into docs/seek.md.
seek-table: build bench-tools
	$(CARGO) bench --locked --package plimsoll --bench peers -- --only lines,program-lines --rounds 10 --seconds 120 --write docs/seek.md

# What plimsoll says about itself while one thing is wrong, on real sockets and in virtual time; about twelve minutes on a
# machine that nobody else uses. Writes its table into docs/verdicts.md. As root also quotas, few ports, and disks.
sabotage: build
	$(CARGO) run --release --locked --package plimsoll-sabotage -- all --page docs/verdicts.md

# Samples with figures in README.md and docs/, printed anew by the release build, with date and machine. The tests execute the same
# commands and compare all but the figures (tests/docs). About ten minutes on a machine that nobody else uses.
figures: export PLIMSOLL_FIGURES = $(CURDIR)/$(BIN)
figures: build test-tools
	$(CARGO) test --locked --package plimsoll --test all -- docs:: --test-threads 1

# Writes the expected outputs of golden tests anew, for a look at the difference.
golden:
	INSTA_UPDATE=always $(CARGO) test --locked --workspace

# Writes docs/run.schema.json from the types of the record.
schema:
	INSTA_UPDATE=always $(CARGO) test --locked --package plimsoll-record --test schema

clean:
	$(CARGO) clean

# Also the clients of Vespa, Elasticsearch, OpenSearch and VoltDB, pinned, into target/clients. The tests install real engines
# themselves, into target/engines: their jars come over the network once. Real documents come from what apt knows.
test-tools:
	@./.ci/tools $(TEST_TOOLS)
	@./.ci/packages
	@./.ci/clients

bench-tools:
	@./.ci/tools $(BENCH_TOOLS)
	@./.ci/packages long
	@./.ci/clients
