# Everything a developer or a newcomer runs. `make` alone prints this list.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where a shell forbids bytecode, every test process would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml hatch_build.py src/clew/kernels.c $(wildcard src/clew/kernels_*.h)
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable '.[local,pdf,openai,tree,rdf,parquet,serve,mcp,postgres]' --group dev
	@touch $(STAMP)

.PHONY: venv
venv: $(STAMP) ## create .venv with everything installed (no torch)

.PHONY: demo
demo: $(STAMP) ## build a small bundled corpus and answer a two-hop question
	@$(BIN)/clew demo

.PHONY: test
test: lint page-test unit ## every gate: ruff, mypy, import-linter, vulture, the page, pytest

.PHONY: lint
lint: $(STAMP) ## ruff, mypy strict, import-linter, vulture (dead code)
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/vulture & beside=$$!; $(BIN)/mypy; types=$$?; wait $$beside && exit $$types
	@$(BIN)/lint-imports

.PHONY: postgres
postgres: ## install a PostgreSQL server, where the tests of one would be skipped (Debian, Ubuntu)
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	{ timeout 60 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 180 apt-get install -y -qq postgresql pgbouncer; }

.PHONY: page
page: ## build the page of `clew serve` (needs Node 20; users do not)
	@cd page && npm ci --no-audit --no-fund && npm run build

.PHONY: page-test
page-test: ## lint, types and unit tests of the page, where page/node_modules is installed
	@if [ -d page/node_modules ]; then cd page && npm run -s lint && npm run -s types && npm run -s test; \
	else echo "the page is not checked: page/node_modules is missing; \`make page\` installs it"; fi

.PHONY: unit
unit: $(STAMP) ## the test suite, without the slow ones
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

.PHONY: test-all
test-all: lint ## every gate and every test, the slow ones too
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n 2 --dist worksteal -m ''

.PHONY: mutants
mutants: $(STAMP) ## small faults in store, agents and retrieve that no test detects (15 minutes)
	@$(BIN)/python -m bench.mutants --save .mutants/survivors.json

.PHONY: format
format: $(STAMP) ## let ruff rewrite the code's layout
	@$(BIN)/ruff check --fix src tests bench
	@$(BIN)/ruff format src tests bench

bench-%: $(STAMP) ## run one benchmark (bench-embed, bench-build, bench-query, …)
	@$(BIN)/python -m bench.$* $(ARGS)

.PHONY: attack-server
attack-server: $(STAMP) ## attack `clew serve`: traversal, smuggling, slow clients, keys, label leaks
	@$(BIN)/python -m bench.attack_server $(ARGS)

attack-%: $(STAMP) ## attack it (attack-kill, -history, -files, -input, -model, -disk); resumes where it stopped
	@$(BIN)/python -m bench.attack.$* $(ARGS)

.PHONY: architecture
architecture: $(STAMP) ## redraw docs/architecture.svg and its table from the code
	@$(BIN)/python -m bench.architecture

.PHONY: clean
clean: ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .mutants .attack
