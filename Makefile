# The newcomer's two commands are `make run` and `make test`; both do their own set-up.

CARGO ?= cargo
BIN   := target/release/plimsoll
# What tests and benchmarks need from Debian or Ubuntu: a program, and the package that has it.
TEST_TOOLS  := nginx:nginx-light openssl:openssl curl:curl
BENCH_TOOLS := nginx:nginx-light wrk:wrk h2load:nghttp2-client ab:apache2-utils curl:curl python3:python3

.PHONY: all build run test check bench zoo golden clean test-tools bench-tools

all: build

build:
	$(CARGO) build --release --locked

run: build
	$(BIN) run quickstart

test: test-tools
	$(CARGO) test --locked --workspace

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

# Writes the expected outputs of golden tests anew, for a look at the difference.
golden:
	INSTA_UPDATE=always $(CARGO) test --locked --workspace

clean:
	$(CARGO) clean

# Also Vespa's own clients, pinned, into target/clients.
test-tools:
	@./.ci/tools $(TEST_TOOLS)
	@./.ci/clients

bench-tools:
	@./.ci/tools $(BENCH_TOOLS)
	@./.ci/clients
