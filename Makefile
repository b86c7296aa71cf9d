# make demo   the environment, then the main job
# make test   set up, then lint, type check and every test but the long campaigns
# make deep   set up, then the long campaigns: random stimulus, other each time, printed to be replayed; all mutants
# make prove  set up, then proofs of what the RTL does in every case, and for each a broken RTL that refutes it
# make lint   set up, then lint and type check only
# make setup  the environment in .venv, the Debian packages it needs, the model and transports compiled
# make lock   choose the dependencies' versions anew from pyproject.toml
# make clean  remove what was built (not .venv)

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# Arguments for pytest, for example: make test PYTEST_ARGS="-k crc"
PYTEST_ARGS ?=
# One more than processors: tests wait for simulators, servers and each other's builds.
WORKERS := $(shell echo $$(( $$(nproc) + 1 )))
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

.PHONY: demo test deep prove lint setup installed lock clean system compiled

demo: installed
	$(BIN)/ironband run jam

# Lint says what it finds while the tests run, which seldom keep every core busy. What pytest makes of the test modules is
# kept by a first process, beside which lint has begun: each worker would make it anew.
test: setup
	@unset PYTHONDONTWRITEBYTECODE; ($(LINT)) & lint=$$!; \
	$(BIN)/pytest --collect-only -qqq $(PYTEST_ARGS) > /dev/null; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS); tests=$$?; \
	wait $$lint && exit $$tests

deep: setup
	$(BIN)/pytest -n auto --dist worksteal -m deep -rP $(PYTEST_ARGS)

prove: setup
	$(BIN)/pytest -n auto --dist worksteal -m prove tests/proofs $(PYTEST_ARGS)

lint: setup
	$(LINT)

setup: installed compiled

installed: system | $(STAMP)

# Asks every time too: sources change.
compiled: | $(STAMP)
	@$(BIN)/python -m toolchain.compiled verbs
	@$(BIN)/python -m cosim.engines.compiled_model

# Asks the system every time: it takes a fraction of a second, and packages come and go without us.
system:
	@$(PYTHON) scripts/system_packages.py

$(STAMP): pyproject.toml requirements.lock | system
	$(PYTHON) -m venv $(VENV)
	@$(PYTHON) scripts/waiting.py "Python packages of requirements.lock" $(PIP) --require-hashes -r requirements.lock
	@$(PYTHON) scripts/waiting.py "ironband itself" $(PIP) --no-deps --no-build-isolation -e .
	$(BIN)/python -m doors.shim
	@touch $@

# Universal: one file for every Python and platform that pyproject.toml allows.
lock: | $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-emit-find-links --quiet \
		--custom-compile-command "make lock" --output-file requirements.lock

clean:
	rm -rf sim_build out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
