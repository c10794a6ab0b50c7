# make demo: install into .venv and search a quarter of a million molecules.
# make test: install into .venv and run lint, type checks and tests. Two processes of one thread each: with more, the
# threads of one wait for a core that those of the other hold, which took a quarter of the time. Beside the type checks,
# which keep one core busy, another prepares what both processes would otherwise do at the same time.
# make test-all: the same, and then the tests that take long.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo
# Public data sets that tests may use where they are present; tests that lack them say so.
export SEQOPT_DATA ?= $(wildcard ../shared/data)

# Where the environment says that no byte code may be written, each of the processes that tests start would compile the
# package again.
export PYTHONDONTWRITEBYTECODE :=

PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: demo test test-all lint prepared install install-dev clean

demo: $(VENV)/.installed
	$(BIN)/seqopt search zinc250k --objective penalized_logp --initial 20 --budget 100 --batch 10 --seed 1 \
	  --out $(DEMO) $(if $(wildcard $(DEMO)/campaign.seqopt),--resume)

test: $(VENV)/.installed-dev
	$(MAKE) -j 2 lint prepared
	$(PYTEST) -m 'not slow' --doctest-modules seqopt tests

test-all: test
	$(PYTEST) -m slow --doctest-modules seqopt tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Byte code of the package and of the tests, and the kernel's compiled code as a search needs it. Whether it works is what
# the tests say later.
prepared: $(VENV)/.installed-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --doctest-modules seqopt tests -k seqopt.api.maximize >/dev/null || true

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
