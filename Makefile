# Every target sets up what it needs in .venv; a machine needs git, make and Python 3.11, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
AUDIT := .venv-audit
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo
DOCS_READY := $(VENV)/.ready-docs
export PYTHONHASHSEED ?= random

.PHONY: setup javascript compile plain demo test test-fast test-long bench swarm mutants docs check audit hashes wheels release clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(MAKE) --no-print-directory compile
	touch $@ $(DEMO_READY) $(DOCS_READY)

# The libraries of the JavaScript package, in the exact versions of its package.json. Without npm its tests are skipped.
javascript: javascript/node_modules/.ready

javascript/node_modules/.ready: javascript/package.json
	@if command -v npm >/dev/null; \
	then npm install --prefix javascript --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error && touch $@; \
	else echo "no npm: the JavaScript package is not tested"; fi

# The engine and the busiest protocols as machine code (mypyc), beside their text. Without a C compiler, or after
# `make plain`, everything runs from the text, at about half the speed. A module of which only comments changed is not
# built again: `touch` says that it is up to date.
compile:
	if command -v $(firstword $(CC)) >/dev/null; \
	then PRECEDE_COMPILE=1 $(BIN)/python setup.py --quiet build_ext --inplace --parallel 2 \
	  && find src -name '*.so' -exec touch {} +; \
	else echo "no C compiler: Precede runs from its text"; fi

plain:
	find src -name '*.so' -delete

# The demo needs less than the tests, so it installs only that when nothing is there yet.
$(DEMO_READY): pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[cli,spark,report]'
	touch $@

demo: $(DEMO_READY)
	$(BIN)/precede demo

# The documentation as a site in out/docs: pages, search, API reference; a broken link or a page outside of the navigation fails.
$(DOCS_READY): pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[cli,docs,verify]'
	touch $@

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -d out/doctrees docs out/docs
	$(BIN)/python -m precede play --export out/docs/play
	@echo "the site is in out/docs: open out/docs/index.html"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(READY) javascript
	$(BIN)/pytest -m "not long" -n 2 --dist loadfile

# Under a minute: protocols, simulator, verifier, measures, structure; no Spark, no browser, no sockets.
test-fast: $(READY)
	$(BIN)/pytest -q -m "not long and not spark and not slow" -n 2 tests/test_import_rules.py tests/test_structure.py \
	  tests/protocols tests/witness tests/measures tests/sim tests/experiments

test-long: $(READY) javascript
	$(BIN)/pytest -n 2 --dist loadfile --timeout 3600

bench: $(READY)
	$(BIN)/python -m benchmarks

swarm: $(READY)
	$(BIN)/precede swarm --worlds 5000

# Faults put into the source on purpose, which tests and swarm must notice; hours. Goes on where it stopped.
mutants: $(READY)
	PYTHONPATH=src $(BIN)/python -m tests.mutants

# Known vulnerabilities of everything pinned. Asks the Python package index, so it needs the network.
audit:
	test -x $(AUDIT)/bin/pip-audit || ($(PYTHON) -m venv $(AUDIT) && $(AUDIT)/bin/pip install --quiet 'pip-audit==2.10.1')
	$(AUDIT)/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict

# The SHA-256 of every archive that pip would install here, for `pip install --require-hashes`. Needs the network.
hashes: $(READY)
	mkdir -p out
	$(BIN)/pip install --quiet --disable-pip-version-check --dry-run --ignore-installed --no-deps \
	  --requirement constraints.txt --report out/pip-report.json
	$(BIN)/python -m benchmarks.hashes out/pip-report.json > out/requirements-hashed.txt

# Source archive, pure wheel, and a compiled wheel for each CPython 3.11 to 3.13 that is here, into dist/.
wheels:
	$(PYTHON) -m releasing build

# The same twice, compared byte by byte; checks for the index and the list of parts; every file tried in a clean
# environment, with the table of docs/guides/install.md. Needs the network, and five minutes of CPU a version.
release:
	$(PYTHON) -m releasing build --twice
	$(PYTHON) -m releasing check
	$(PYTHON) -m releasing try

clean:
	find src -name '*.so' -delete
	rm -rf $(VENV) $(AUDIT) .venv-release build dist out lake demo-out javascript/node_modules
