# Each target makes its own .venv and installs what it needs; PYTHON is only used to create it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
NATIVE := CMakeLists.txt $(wildcard backend/*.py native/*.* native/*/*.*)
CPP    := $(wildcard native/*.h native/*.cpp native/*/*.h native/*/*.cpp)

.PHONY: demo test docs levels warnings sanitize fuzz bench papers lint wheel clean

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# the kernels are built for this machine's instructions only, and only what changed
$(STAMP): pyproject.toml $(NATIVE) | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable ".[test]" --config-settings=cmake.define.KFREE_WERROR=ON
	touch $@

# the command and nothing else, so that the demo does not wait for linters; a build that the tests have made will do
$(VENV)/.command: pyproject.toml $(NATIVE) | $(VENV)/.made
	test -e $(STAMP) && test -z "$$(find $? -newer $(STAMP))" \
	  || $(BIN)/python -m pip install --quiet --editable ".[cli]" --config-settings=cmake.define.KFREE_WERROR=ON
	touch $@

# packages of others: what is there already keeps its version, and what cannot be had is done without: tests skip it
$(VENV)/.integrations: $(STAMP)
	$(BIN)/python -m pip freeze --exclude-editable > $@.txt
	-$(BIN)/python -m pip install --quiet --constraint $@.txt --editable ".[integrations]" --config-settings=cmake.define.KFREE_WERROR=ON
	-$(BIN)/python -m pip install --quiet --no-deps "bertopic>=0.17"
	touch $@

demo: $(VENV)/.command    ## customers, texts and pictures: says what was found, writes demo/
	$(BIN)/kfree demo --out demo --force

test: $(VENV)/.integrations lint  ## style, types, and the whole suite
	$(BIN)/python -m pytest -n 2 --dist worksteal --disable-warnings

lint: $(STAMP)            ## style, spelling and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy

TESTS ?= tests/twins tests/laws tests/estimators
levels: $(STAMP)          ## the kernels of every set of instructions this machine has, each through TESTS
	$(BIN)/python tools/native.py levels $(TESTS)

LEVELS ?= all
warnings: $(STAMP)        ## every level (or LEVELS=machine) by every compiler that is there, warnings as errors
	$(BIN)/python tools/native.py warnings $(LEVELS)

sanitize: $(STAMP)        ## the twins and the border under AddressSanitizer and UBSan
	$(BIN)/python tools/native.py memory tests/twins tests/test_border.py

wheel: $(VENV)/.made      ## a wheel for this platform in dist/, tried in an empty environment
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python tools/native.py wheel dist

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[docs]" --config-settings=cmake.define.KFREE_WERROR=ON
	touch $@

docs: $(VENV)/.docs       ## the site, in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

SECONDS ?= 300
SEED    ?= 1
fuzz: $(STAMP)            ## hostile inputs for some minutes: SECONDS=300 SEED=1; the counts go to docs/theory/tested.md
	PYTHONPATH=tests:tools $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED) --keep --write

bench: $(STAMP)           ## the benchmark tables, written to docs/; installs the rivals
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python -m benchmarks

papers: $(STAMP)          ## the papers' tables and figures, written to docs/papers/
	$(BIN)/python -m benchmarks.papers

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/api/generated src/kfree/kernels/native/*.so .pytest_cache .mypy_cache .ruff_cache demo
