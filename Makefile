# SPDX-License-Identifier: Apache-2.0
# Every target does its own set-up (tools/setup) and reuses what an earlier one has made.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell command -v python3.11 || command -v python3)
NODES ?= 2
PRODUCT := core operator sidecar router cli
CHECKED := $(PRODUCT) tools e2e bench tests
BENCHES := $(patsubst bench/%.py,%,$(shell grep -ls "^Run: " bench/*.py))
SETUP := $(PYTHON) tools/setup
RUN := tools/run

##@ Try it
.PHONY: demo cluster cluster-down
demo: ## The whole chain on this machine in about 6 minutes after set-up; KEEP=1 leaves it running
	@$(SETUP) control-env engine-env packages hyperkube images
	@$(RUN) python -m gsstack.demo $(if $(KEEP),--keep)

cluster: ## A real Kubernetes cluster on this machine with NODES=2 nodes
	@$(SETUP) control-env packages hyperkube images
	@$(RUN) python -m gscluster up --nodes $(NODES)

cluster-down: ## End the cluster and leave nothing of it
	@$(SETUP) control-env
	@$(RUN) python -m gscluster down

##@ Check it
.PHONY: check test prepare static functional e2e bench bench-operator
check: static ## Format, lint, types, import rules, generated files and unit tests: under 3 minutes
	@$(RUN) python -m pytest tests/unit tests/property

test: prepare ## Everything: check, functional tests and the whole chain on a real cluster: about 30 minutes
	@$(RUN) python -m pytest -n 3

prepare: static
	@$(SETUP) engine-env packages hyperkube kwok images

static:
	@$(SETUP) control-env
	@$(RUN) ruff format --check --quiet . || { echo "error: formatting differs; run: tools/run ruff format ." >&2; exit 1; }
	@$(RUN) ruff check --quiet .
	@$(RUN) python -m gearshift.api.crdgen crds --check || { echo "error: crds/ is out of date; run: make generate" >&2; exit 1; }
	@$(RUN) lint-imports --no-logo | tail -n 3
	@$(RUN) mypy $(wildcard $(CHECKED))

functional: ## The operator and the router against a real API server, without nodes
	@$(SETUP) control-env packages hyperkube kwok
	@$(RUN) python -m pytest tests/functional

e2e: ## The whole chain on a real two-node cluster
	@$(SETUP) control-env engine-env packages hyperkube kwok images
	@$(RUN) python -m pytest e2e

bench: $(addprefix bench-,$(BENCHES)) ## All benchmarks, as JSON lines

bench-operator: ## The operator on 1,000 services and 8,000 pods of a real API server with kwok nodes
	@$(SETUP) control-env packages hyperkube kwok
	@$(RUN) python bench/operator.py

bench-%: ## One benchmark, for instance bench-router
	@$(SETUP) control-env
	@$(RUN) python bench/$*.py

##@ Change it
.PHONY: generate format lock
generate: ## Write crds/ from the types in core/gearshift/api
	@$(SETUP) control-env
	@$(RUN) python -m gearshift.api.crdgen crds

format: ## Format the code and fix what the linter can fix
	@$(SETUP) control-env
	@$(RUN) ruff format . && $(RUN) ruff check --fix .

lock: ## Compile requirements/*.in to requirements/*.txt, with newer versions where there are any
	@$(SETUP) lock

##@ Leave it
.PHONY: clean purge
clean: ## End what make demo or make cluster left running, and remove what the tools wrote into the checkout
	@if [ -x "$${GEARSHIFT_CACHE:-/var/cache/gearshift}/envs/control/bin/python" ]; then $(RUN) python -m gscluster down; fi
	@rm -rf build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

purge: clean ## Also remove everything that set-up has built ($GEARSHIFT_CACHE, else /var/cache/gearshift)
	@rm -rf "$${GEARSHIFT_CACHE:-/var/cache/gearshift}"

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9%-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
