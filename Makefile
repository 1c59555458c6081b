# semif-kafka: every task of the project. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
CACHE  ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/semif-kafka
PINS   := $(shell cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)
ENV    := $(CACHE)/env-$(PINS)
BIN    := .venv/bin
BROKER ?= mock
DATA   ?= ../shared/semif
EACH   ?= 10
# Most tests wait for a process to start or a broker to answer, so that four at a time halve the
# time on two cores. A file stays together, for its fixtures; the slow ones come first.
WORKERS ?= 4
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
export SEMIF_CACHE := $(CACHE)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# The environment is large (torch), so it lives in a cache keyed by the pins and a second
# checkout reuses it. What belongs to one checkout, the project itself, is in .venv: a bare
# environment that sees the cached one through a .pth file.
$(ENV)/.complete:
	@mkdir -p $(CACHE)
	@PYTHON="$(PYTHON)" flock $(CACHE)/env.lock ./deploy/build-env.sh $(ENV)

.venv/.pins-$(PINS): $(ENV)/.complete
	@./deploy/link-env.sh $(ENV) .venv
	@touch $@

.PHONY: setup
setup: .venv/.pins-$(PINS) ## everything the other targets need; leaves .venv/bin/semif-kafka

.PHONY: demo
demo: setup ## the main job end to end (BROKER=kafka: a real local broker, with transactions)
ifeq ($(BROKER),kafka)
	@$(BIN)/python -m tests.support.local_kafka exec -- $(BIN)/semif-kafka demo --bootstrap '{bootstrap}'
else
	@$(BIN)/semif-kafka demo
endif

.PHONY: test
test: setup ## all tests but those that need the SemIf rows
	$(PYTEST) -m "not faults" tests/broker tests/unit

.PHONY: test-faults
test-faults: setup ## offsets, rebalances and transactions under faults, on real brokers
	$(PYTEST) -m faults tests/broker

.PHONY: test-unit
test-unit: setup ## the tests that need no broker
	$(PYTEST) tests/unit

.PHONY: test-tiny
test-tiny: setup ## the making of the built-in model: rows, tokenizer, training, figures
	$(PYTEST) tests/tiny

.PHONY: card
card: setup ## the built-in model's figures on development rows, EACH a family and level: build/card.md
	$(BIN)/python -m acceptance.tiny card --each $(EACH) --to build/card.md

.PHONY: test-contract
test-contract: setup ## the SemIf contract on SemIf's own rows: DATA=folder
	SEMIF_CONTRACT_DATA="$(DATA)" $(BIN)/python -m pytest tests/contract

.PHONY: lint
lint: setup ## ruff and mypy, as CI runs them
	$(ENV)/bin/ruff check .
	$(ENV)/bin/ruff format --check .
	$(BIN)/python -m mypy
	$(ENV)/bin/hadolint Dockerfile

.PHONY: format
format: setup ## rewrite the code as ruff has it
	$(ENV)/bin/ruff format .
	$(ENV)/bin/ruff check --fix .

.PHONY: schemas
schemas: setup ## generate schemas/json/ anew
	$(BIN)/python -m schemas.generate

.PHONY: docs
docs: setup ## generate docs/metrics.md and the README's table of settings anew
	$(BIN)/python -m processor.documents

.PHONY: kafka
kafka: setup ## start a local Apache Kafka and print its address; Ctrl-C stops it
	@$(BIN)/python -m tests.support.local_kafka run

.PHONY: bench-engine
bench-engine: setup ## ratios of time and peak bytes to a scorer that copies the cache (a quarter of an hour)
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m acceptance.bench_engine $(BENCH)

.PHONY: gpu-check
gpu-check: setup ## everything that only a GPU can prove, under five minutes (CHECK="--device cpu": toy size)
	$(BIN)/python -m acceptance.gpu_check $(CHECK)

.PHONY: test-containers
test-containers: setup ## image, compose and testcontainers, on the engine of DOCKER_HOST
	$(BIN)/python -m pytest -s tests/containers
