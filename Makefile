# The targets that the README names. Each can be run alone on a fresh clone.

CARGO ?= cargo

.PHONY: demo build release dist install test soak test-tools conformance check lint docs bench bench-docs bench-tools clean

## Builds mcpx and shows it at work on the MCP server that it carries.
demo: release
	@sh tests/demo $${CARGO_TARGET_DIR:-target}/release/mcpx

release:
	$(CARGO) build --release --bin mcpx

## One static binary for any Linux of this machine's architecture: dist/mcpx.
TARGET = $$(rustc -vV | sed -n 's/^host: //p')
TREE = $${CARGO_TARGET_DIR:-target}/$(TARGET)/release
# No path of this machine gets into it. On x86-64 rustc brings its own linker, which folds equal functions
# and packs relocations; both make the binary smaller, and neither makes it do anything else.
STATIC = -C target-feature=+crt-static --remap-path-prefix=$$PWD=/mcpx \
	--remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=/cargo \
	$$(case $(TARGET) in (x86_64-unknown-linux-gnu) echo "-C link-arg=-Wl,--icf=all -C link-arg=-Wl,--pack-dyn-relocs=relr";; esac)
build:
	RUSTFLAGS="$(STATIC)" $(CARGO) build --release --locked --bin mcpx --target $(TARGET)
	mkdir -p dist
	cp $(TREE)/mcpx dist/mcpx
	@ls -l dist/mcpx

## The same as an archive with completions, manual page, bill of materials and sums; the same bytes each time.
dist: build
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)} CARGO=$(CARGO) \
		tests/dist/pack dist/mcpx $(TARGET) dist

install:
	$(CARGO) install --path . --bin mcpx --locked

## The runtimes and servers that tests run against, into ignored folders below tests/tools.
test-tools:
	@tests/tools/install
	@tests/tools/install opencode

## Every test; cargo prints the counts.
test: test-tools
	$(CARGO) test

## What the official conformance suite finds, scenario by scenario, of mcpx as a server and as a client;
## `make test` runs the same.
conformance: test-tools
	$(CARGO) build
	MCPX_BIN=$$PWD/$${CARGO_TARGET_DIR:-target}/debug/mcpx tests/tools/node_modules/node22/bin/node tests/conformance/server.mjs 2025-11-25 2026-07-28
	$(CARGO) test --test it -- --nocapture conformance::conformance_with

## Random kills at random moments and many scripts at once, for long: SOAK rounds of each; and 500 times as many
## damaged inputs for whatever reads bytes from outside.
SOAK ?= 1000
soak: test-tools
	MCPX_SOAK=$(SOAK) $(CARGO) test --test it -- --nocapture soak::
	MCPX_SOAK=$(SOAK) $(CARGO) test --lib mutated_

## What a change must pass.
check: lint test

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items

## Rewrites the pages that the tables render; a test compares them.
docs:
	$(CARGO) run --quiet --bin mcpx -- docs --write

## The programs that `make bench` compares with.
bench-tools: test-tools
	@tests/tools/install bench

# Measured is what is shipped: the static binary.
BENCH = RUSTFLAGS="$(STATIC)" $(CARGO) bench --bench bench --target $(TARGET)

## Figures beside those of comparable programs; writes nothing.
bench: test-tools
	$(BENCH)

## The same, kept as docs/benchmarks.md; with a scheduling class of its own where the machine allows it.
bench-docs: test-tools
	$(BENCH) --no-run
	$$(chrt -r 20 true 2>/dev/null && echo chrt -r 20) env $(BENCH) -- write

clean:
	$(CARGO) clean
	rm -rf dist
