.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
CASES ?= 20000
POINTS ?= 400
RUNTIME ?= bwrap
FLEET ?= 600 300 60

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
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-kubernetes: setup  ## what needs a cluster, in the real one of KUBECONFIG; see tests/conformance/clusters.py
	@test -n "$$KUBECONFIG" -a -n "$$TEST_KUBERNETES_IMAGE" || \
		{ echo "Set KUBECONFIG, TEST_KUBERNETES_IMAGE and TEST_KUBERNETES_SERVERS."; exit 2; }
	@$(BIN)/python -m pytest tests/kubernetes tests/conformance -k kubernetes

check:  ## format, lint, types, architecture tests, of the dashboard, too
	@$(PYTHON) scripts/setup.py dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/basedpyright
	@ROOST_URL= $(BIN)/roost engines install  # with Node, which checks the dashboard
	@$(BIN)/python scripts/dashboard.py check
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile tests/architecture tests/scripts

bench: setup  ## the benchmarks: rows as they come, on stdout and in bench/results.json
	@$(PYTHON) scripts/setup.py bench
	@$(BIN)/python -m bench

bench-scale: setup  ## how costs grow from 10 to 1,000,000 agents and files, in docs/reference/scale.md; SIZES="10 100" measures less
	@$(PYTHON) scripts/setup.py bench
	@$(BIN)/python -m bench.scale $(SIZES)

images:  ## the images of server and engines, without a daemon; REGISTRY=... to push, BASE=... another base
	@$(PYTHON) scripts/setup.py runtime
	@$(BIN)/python scripts/dashboard.py
	@$(BIN)/python scripts/docs.py
	@$(BIN)/python deploy/images/build_images.py --registry "$(REGISTRY)" --base "$(BASE)"

compose:  ## the server in Docker, with the socket of Docker for its agents (docs/guides/compose.md)
	@DOCKER_GID=$$(stat -L -c %g $${DOCKER_SOCKET:-/var/run/docker.sock}) docker compose -f deploy/compose/compose.yaml up

fuzz: setup  ## CASES=20000 requests made from the description of the API; fails at an undescribed answer or a 5xx
	@$(BIN)/python -m tests.fuzz $(CASES)

chaos: setup  ## kill server and containers at POINTS=400 random points of snapshots, pushes, skills and more; RUNTIME=docker
	@$(BIN)/python -m tests.chaos $(RUNTIME) $(POINTS)

chaos-fleet: setup  ## kill, pause and cut off servers of a cluster and of two Docker hosts under load; FLEET="seconds fakes hermes"
	@$(BIN)/python -m tests.chaos.fleet_chaos $(FLEET)

fix:  ## format, and let the linter mend what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/python scripts/dashboard.py fix

.PHONY: help setup up dashboard docs screenshots test check bench bench-scale images compose fuzz chaos chaos-fleet fix
