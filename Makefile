# Every target works from a bare checkout: it makes .venv, installs what it needs once, and runs.

VENV ?= .venv
BIN := $(VENV)/bin
# Each process keeps to one part of the tests, and makes what they share once.
PYTEST_ARGS ?= -n 2 --dist worksteal -q

# The first interpreter that runs, is 3.11 or newer, and can make virtual environments.
PYTHON ?= $(shell for p in python3.11 python3 python python3.12; do \
	if $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$p; break; fi; done)

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test browser docs docs-check slow lowest coverage lint format types spelling graph package smoke \
	extras container release clean

demo: $(VENV)/.report
	@$(BIN)/baldur demo --out build/demo

# One thread per process: the tests already run in two processes. Compiled modules are kept even
# where the environment says otherwise: some tests start processes that import the package anew.
test: $(VENV)/.test browser
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		$(BIN)/python -m pytest $(PYTEST_ARGS)

# The report page is tested in a real browser where the system can give one: never a failure, as
# the tests say themselves why they were skipped.
browser:
	@.ci/browser || true

# The documentation, with its gallery and its tutorial run anew, in build/docs; needs no network.
docs: $(VENV)/.docs
	rm -rf build/docs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q \
		-b html -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

# What the site promises: code blocks run, links resolve, nothing is loaded from a network.
docs-check: docs $(VENV)/.test browser
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest docs/checks -q

slow: $(VENV)/.test browser
	$(BIN)/python -m pytest -m slow -v

# The tests once more, with every dependency at the lower bound pyproject.toml names.
lowest: $(VENV)-lowest/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest $(PYTEST_ARGS)

# Lines and branches of the package that the tests reach: a table on the screen, pages in build/coverage.
coverage: $(VENV)/.test browser
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST_ARGS) \
		--cov=baldur --cov-branch --cov-report=term:skip-covered --cov-report=html:build/coverage

spelling: $(VENV)/.test
	$(BIN)/codespell

# The import graph of the architecture page, drawn anew from the code.
graph: $(VENV)/.core
	$(BIN)/python docs/draw_import_graph.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.test
	$(BIN)/mypy

# The sdist and the wheel in dist/, both checked.
package: $(VENV)/.test
	$(BIN)/python .ci/package.py

# The wheel in bare environments of every supported Python that is here.
smoke: package
	$(BIN)/python .ci/smoke.py

# Every extra alone in a bare environment: slow, as each installs its libraries anew.
extras: package
	$(BIN)/python .ci/extras.py

# The container image, or its steps where no image can be built.
container: package
	$(BIN)/python .ci/container.py

# Dates the changelog, commits and tags. Nothing is uploaded: see docs/develop/releasing.md.
release: smoke
	$(BIN)/python .ci/release.py

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/_generated docs/gallery
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

%/bin/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with the venv module was found;" \
		"give one with 'make PYTHON=/path/to/python'." >&2; exit 1; }
	$(PYTHON) -m venv $*

# Stamp files: a second call installs nothing unless pyproject.toml has changed.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(VENV)/.report: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[report]'
	@touch $@ $(VENV)/.core

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[test]'
	@touch $@ $(VENV)/.core $(VENV)/.report

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[docs]'
	@touch $@ $(VENV)/.core $(VENV)/.report

$(VENV)-lowest/.test: pyproject.toml .ci/lowest.py | $(VENV)-lowest/bin/python
	$(VENV)-lowest/bin/python .ci/lowest.py > $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/python -m pip install -q -r $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/python -m pip install -q --no-deps -e .
	@touch $@
