# Everything a user or a contributor runs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --editable

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env demo browser test test-slow fuzz lint docs bench wheel clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# ---------------------------------------------------------------------------- environments, one stamp for each
# A stamp is renewed when pyproject.toml changes; code changes need nothing, as the install is editable.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "leastaction needs Python 3.11 or newer; set PYTHON=..., for example make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the environment in $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.run: pyproject.toml $(VENV)/.made
	@echo "Installing leastaction and what it needs to run ..."
	@$(PIP_INSTALL) '.[plot]'
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.made
	@echo "Installing leastaction and what its tests need ..."
	@$(PIP_INSTALL) '.[test,lint]'
	@touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml $(VENV)/.made
	@echo "Installing leastaction and what its documentation needs ..."
	@$(PIP_INSTALL) '.[plot,docs]'
	@touch $@

env: $(VENV)/.run  ## make the environment to run leastaction

# ---------------------------------------------------------------------------- what to run

demo: $(VENV)/.run  ## show a linkage under two methods, in the browser or in a report with a picture and an animation
	@$(BIN)/leastaction demo

lint: $(VENV)/.test  ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/mypy

# The kernels are compiled once, before two test processes would both want the same ones.
WARMUP := $(BIN)/leastaction warmup --processes 2

# The tests of pages need a browser. Where it cannot be had they are skipped, and pytest says so.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	    { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing Chromium for the tests of pages ..." && \
	      { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium ffmpeg fonts-dejavu-core; } >/dev/null 2>&1; } || \
	    echo "There is no Chromium, so the tests of pages are skipped; on Debian: apt-get install chromium"

# Types are checked while kernels are compiled, as neither fills two cores all the time.
test: $(VENV)/.test browser  ## check style and types, then run the tests
	@$(BIN)/ruff check .
	@$(BIN)/mypy & types=$$!; $(WARMUP) && wait $$types
	@$(BIN)/python -m pytest -n 2 -q

test-slow: $(VENV)/.test browser  ## run the long tests too
	@$(WARMUP)
	@$(BIN)/python -m pytest -n 2 -q -m ""

# A number of seeds, or a range of them such as 500:600.
SEEDS ?= 100

fuzz: $(VENV)/.test  ## check properties of random mechanisms; SEEDS=1000 or SEEDS=500:600 says which
	@$(WARMUP)
	@$(BIN)/python -m pytest -n 2 -q tests/fuzz --seeds $(SEEDS)

docs: $(VENV)/.docs  ## write the documentation to build/docs
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

bench: $(VENV)/.test  ## measure speed against Pinocchio and MuJoCo
	@$(BIN)/leastaction bench

# The wheel brings the programs of warmup, compiled for common processors.
wheel: $(VENV)/.run  ## build dist/*.whl, with compiled code inside
	@$(BIN)/leastaction warmup --store --processes 2
	@$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls -l dist/*.whl

clean:  ## remove the environment and everything that was generated
	rm -rf $(VENV) build dist out .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests docs \( -name __pycache__ -o -name __kernelcache__ \) -type d -prune -exec rm -rf {} +
