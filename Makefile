# Each target makes its own .venv and installs what it needs; PYTHON is only used to create it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test fuzz bench papers lint clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

demo: $(STAMP)            ## cluster the digits, print what was found, write demo/
	$(BIN)/python examples/demo.py demo

test: $(STAMP) lint       ## style, types, and the whole suite
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

SECONDS ?= 300
SEED    ?= 1
fuzz: $(STAMP)            ## hostile inputs for some minutes: SECONDS=300 SEED=1; the counts go to docs/reliability.md
	PYTHONPATH=tests:tools $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED) --keep --write

bench: $(STAMP)           ## the benchmark tables, written to docs/; installs the rivals
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python -m benchmarks

papers: $(STAMP)          ## the papers' tables and figures, written to docs/papers/
	$(BIN)/python -m benchmarks.papers

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache demo
