.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
CASES ?= 20000
POINTS ?= 400

help:  ## what can be typed here
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

setup:  ## everything that running and testing need: .venv, locked dependencies, engines
	@$(PYTHON) scripts/setup.py dev
	@$(BIN)/python scripts/prepare.py

up:  ## the server on http://localhost:8642, data in .roost/
	@$(PYTHON) scripts/setup.py runtime start
	@$(BIN)/python scripts/prepare.py start
	@exec $(BIN)/roost up

dashboard:  ## build the pages of the dashboard, which `make up` does, too
	@$(PYTHON) scripts/dashboard.py

docs:  ## build the docs as a site, which `make up` does, too; the server has it at /docs
	@$(PYTHON) scripts/setup.py runtime
	@$(BIN)/python scripts/docs.py

screenshots: setup  ## take the pictures of the docs again, in a browser
	@ROOST_DOCS_IMAGES=docs/images $(BIN)/python -m pytest -q tests/dashboard/test_docs_images.py

# Two workers by default: each may run an engine (1 GiB). Tests of one file share a worker, and so what starts once for them.
test: setup  ## the whole test suite; JOBS=8 on a bigger machine
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

check:  ## format, lint, types, architecture tests, of the dashboard, too
	@$(PYTHON) scripts/setup.py dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/basedpyright
	@ROOST_URL= $(BIN)/roost engines install  # with Node, which checks the dashboard
	@$(BIN)/python scripts/dashboard.py check
	@$(BIN)/python -m pytest -q tests/architecture tests/scripts

bench: setup  ## the benchmarks: rows as they come, on stdout and in bench/results.json
	@$(PYTHON) scripts/setup.py bench
	@$(BIN)/python -m bench

bench-scale: setup  ## how costs grow from 10 to 1,000,000 agents and files, in docs/reference/scale.md; SIZES="10 100" measures less
	@$(PYTHON) scripts/setup.py bench
	@$(BIN)/python -m bench.scale $(SIZES)

fuzz: setup  ## CASES=20000 requests made from the description of the API; fails at an undescribed answer or a 5xx
	@$(BIN)/python -m tests.fuzz $(CASES)

chaos: setup  ## kill the server and containers at POINTS=400 random points of snapshots, pushes, skills, payments, sessions and more
	@$(BIN)/python -m tests.chaos $(POINTS)

fix:  ## format, and let the linter mend what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/python scripts/dashboard.py fix

.PHONY: help setup up dashboard docs screenshots test check bench bench-scale fuzz chaos fix
