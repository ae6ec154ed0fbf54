# `make demo` and `make test` need only python3 (3.11 or newer), pip, venv and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Two workers saturate two cores; inside a worker one BLAS thread is enough.
WORKERS ?= 2
# Each worker begins with one half, in order: what a module's tests share is made once.
SPREAD = -n $(WORKERS) --dist worksteal
# Bytecode is kept, whatever the environment says: tests start about a hundred processes.
ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

.PHONY: demo app docs dist release test test-all quick r oldest prereleases lint types bench torture clean

$(VENV)/.base: pyproject.toml experiments/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[dev]" -e ./experiments
	@touch $@

$(VENV)/.app: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[app,io]"
	@touch $@

demo: $(VENV)/.base
	$(BIN)/icqf demo

app: $(VENV)/.app
	$(BIN)/icqf app

# The documentation site, in build/site; a broken link, a missing anchor or picture, or an orphan page fails.
docs: $(VENV)/.docs
	$(BIN)/python docs/make_site.py

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@

# Wheel and sdist in dist/, checked as the package index would, and the demo from the wheel alone in an environment
# that has nothing else and compiles nothing.
dist:
	rm -rf dist $(VENV)-dist
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet build twine
	$(VENV)-dist/bin/python -m build
	$(VENV)-dist/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --only-binary :all: dist/*.whl
	$(VENV)-dist/bin/icqf demo --out $(VENV)-dist/demo

# All of a release but the upload; a line for each step.
release: $(VENV)/.dev $(VENV)/.docs
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python release/dry_run.py

test: lint types
	$(ENV) $(BIN)/python -m pytest $(SPREAD) -m "not long"

# Everything: also the commands of every page of the docs, the site in a browser, the paper's experiments.
test-all: lint types
	$(ENV) $(BIN)/python -m pytest $(SPREAD)

quick: $(VENV)/.dev
	$(ENV) $(BIN)/python -m pytest $(SPREAD) -m "not slow" -q

# The R package in r/, built and checked; needs R with the packages that r/DESCRIPTION names.
r: $(VENV)/.dev
	mkdir -p build/r
	cd build/r && export NOT_CRAN=true ICQF_PROGRAM=$(abspath $(BIN))/icqf && R CMD build ../../r && R CMD check --no-manual icqf_*.tar.gz

# The lowest versions that pyproject.toml allows, in an environment of their own; what these old versions say of
# each other does not count.
oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet uv
	$(VENV)-oldest/bin/uv pip install --quiet --python $(VENV)-oldest/bin/python --resolution lowest-direct -e ".[test]" -e ./experiments
	$(ENV) $(VENV)-oldest/bin/python -m pytest $(SPREAD) -W ignore::DeprecationWarning

# The newest versions, alphas and release candidates included.
prereleases:
	$(PYTHON) -m venv $(VENV)-prereleases
	$(VENV)-prereleases/bin/python -m pip install --quiet --pre -e ".[test]" -e ./experiments
	$(ENV) $(VENV)-prereleases/bin/python -m pytest $(SPREAD)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# 100 000 damaged model files, 5 000 damaged inputs, 100 kills, …: hours, and one table of counts at the end.
torture: $(VENV)/.dev
	ICQF_TORTURE=long $(ENV) $(BIN)/python tests/hostile/torture.py

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-prereleases $(VENV)-dist build dist .pytest_cache .mypy_cache .ruff_cache
