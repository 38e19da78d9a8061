# Every target sets up what it needs in .venv; a machine needs git, make and Python 3.11, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHONHASHSEED ?= random

.PHONY: setup demo test test-long bench swarm check clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/precede demo

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(READY)
	$(BIN)/pytest -m "not long" -n 2 --dist loadfile

test-long: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

bench: $(READY)
	$(BIN)/python -m benchmarks

swarm: $(READY)
	$(BIN)/precede swarm --worlds 5000

clean:
	rm -rf $(VENV) build dist out lake
