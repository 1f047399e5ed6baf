# Every target sets up what it needs: Python 3.11 or newer, make and git are enough. uv is used when it is on PATH.

PYTHON ?= python3
ARGS   ?=

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
REPORT := build/behaviours.json

IS_NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

.DEFAULT_GOAL := help
.PHONY: help run test check behaviours bench faults docs format clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

run: $(READY) ## Show the plugins that loaded and what they contribute
	@$(BIN)/opencode-core tour $(ARGS)

test: $(READY) ## Run the tests on all cores; ARGS='-k scope -n 0' goes to pytest
	@$(BIN)/pytest -n auto $(ARGS)

check: $(READY) ## Lint, format, types, import directions, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.docs.check_docs

behaviours: $(READY) ## Print which behaviours of docs/behaviours.md a passing test shows
	@rm -f $(REPORT)
	@failed=0; \
	$(BIN)/pytest -q -n auto --behaviours-report $(REPORT) $(ARGS) || failed=$$?; \
	$(BIN)/python -m tests.support.print_behaviours $(REPORT) || failed=$$?; \
	exit $$failed

bench: $(READY) ## Measure: every benchmark, or those named in ARGS
	@$(BIN)/python -m tests.benchmarks $(ARGS)

faults: $(READY) ## Kill processes for long, and look what they lost; ARGS='sqlite --rounds 50'
	@$(BIN)/python -m tests.faults.long $(ARGS)

docs: $(READY) ## Write the generated pages of docs/ anew
	@$(BIN)/python docs/generate.py $(ARGS)

format: $(READY) ## Format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment, the caches and what was built
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Runs again only when pyproject.toml changed, or when the last set-up did not finish.
$(READY): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "No '$(PYTHON)' on PATH. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" $(IS_NEW_ENOUGH) || { \
	  echo "Python 3.11 or newer is needed, but '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python $(IS_NEW_ENOUGH) 2>/dev/null || rm -rf $(VENV)
	@if command -v uv >/dev/null; then \
	  echo "Setting up $(VENV) with uv (once, until pyproject.toml changes)"; \
	  { test -d $(VENV) || uv venv -q --python "$(PYTHON)" $(VENV); } && \
	  uv pip install -q --python $(BIN)/python -e '.[dev]'; \
	else \
	  echo "Setting up $(VENV) with pip (once, until pyproject.toml changes)"; \
	  { test -x $(BIN)/pip || "$(PYTHON)" -m venv $(VENV); } && \
	  $(BIN)/python -m pip install -qq -e '.[dev]'; \
	fi
	@touch $@
