# `make` lists the available targets. Everything is installed into .venv and frontend/node_modules.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python of version 3.11 or later.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
BIN := .venv/bin
HOST ?= xprof
PORT ?= 8791

NATIVE := $(wildcard tb_memplugin/native/*.p[xy][xd] tb_memplugin/native/*/*.p[xy][xd]) tools/native_build.py
SOURCES := $(shell find frontend -path frontend/node_modules -prune -o -type f -print 2>/dev/null)
PYTHON_CODE := tb_memplugin tests benchmarks tools demo_logdir examples setup.py .ci

help: ## list the available targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/installed tb_memplugin/static/index.html ## install tb-memplugin with its hosts into .venv, page included

demo: setup ## print a summary of demo_logdir/, then serve it: HOST=xprof|tensorboard|standalone PORT=8791
	$(BIN)/tb-memplugin summary demo_logdir
	@echo; echo "Open http://localhost:$(PORT)/$(PAGE_$(HOST)) (Ctrl+C stops the server)"; echo
	@$(SERVE_$(HOST)) --logdir demo_logdir --port $(PORT)

SERVE_xprof = $(BIN)/tb-memplugin xprof
SERVE_tensorboard = $(BIN)/tensorboard
SERVE_standalone = $(BIN)/tb-memplugin serve
PAGE_xprof = ?tag=memory_viewer
PAGE_tensorboard = \#memory

# Caches make this fast. eslint's cache misses a change in another file that makes a type wrong; `make test` uses none.
check: .venv/tested tb_memplugin/static/index.html ## lint, types and unit tests, without a browser: before each commit
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target QUICK=:quick unit-python lint types unit-page

unit-python: .venv/tested tb_memplugin/static/index.html
	$(BIN)/python -m pytest --quiet -m "not browser and not slow"

unit-page: frontend/node_modules/.package-lock.json
	cd frontend && npm test

test: .venv/tested tb_memplugin/static/index.html chromium ## lint, types and all tests, shuffled: ORDER=SEED repeats an order
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint types unit-page
	$(BIN)/python -m pytest -n auto --maxprocesses 8 $(if $(ORDER),--order=$(ORDER))

lint: .venv/tested frontend/node_modules/.package-lock.json ## check the style and format of Python and TypeScript
	$(BIN)/ruff check $(wildcard $(PYTHON_CODE))
	$(BIN)/ruff format --check $(wildcard $(PYTHON_CODE))
	cd frontend && npm run lint$(QUICK)

types: .venv/tested frontend/node_modules/.package-lock.json ## check the types of Python and TypeScript
	$(BIN)/mypy $(filter-out setup.py,$(wildcard $(PYTHON_CODE)))
	cd frontend && npm run types$(QUICK)

bench: .venv/tested tb_memplugin/static/index.html chromium ## measure speed and memory, beside XProf and xprof-rs
	$(BIN)/python -m pip install --quiet 'tb-memplugin[bench]'
	$(BIN)/python -m benchmarks.rivals

# Coverage guides it where atheris is installed. SANITIZE=1 runs the compiled modules under ASan and UBSan instead.
MINUTES ?= 60
fuzz: .venv/tested ## try damaged files, requests and names: MINUTES=60, SANITIZE=1
	PYTHONPATH=.:tests $(BIN)/python -m fuzz --minutes $(MINUTES) $(if $(SANITIZE),--sanitize) $(SUBJECTS)

# The wheel is built from the sdist, then installed and tried with neither Node nor a compiler on the PATH.
dist: .venv/bin/python tb_memplugin/static/index.html ## build an sdist and a wheel in dist/, and try the wheel
	$(BIN)/python -m pip install --quiet build
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m tools.sbom dist/*.whl frontend/package-lock.json
	$(PYTHON) .ci/try_wheel.py dist/*.whl demo_logdir

client: .venv/tested ## generate the page's client from the endpoints
	$(BIN)/python -m tools.generate_client

schemas: .venv/tested ## generate the JSON Schemas of --json and the tables of docs/json.md from the types of answers
	$(BIN)/python -m tools.generate_schemas
	$(BIN)/python -m tools.generate_json_docs

# Generated code runs with any later protobuf, but with no earlier one, so an old compiler has its own environment.
protos: .venv/tested build/protoc/bin/protoc-gen-mypy ## generate the _pb2 and _fields modules from the .proto files
	PATH=$(CURDIR)/build/protoc/bin:$$PATH build/protoc/bin/python -m grpc_tools.protoc \
		-I. --python_out=. --mypy_out=quiet:. tb_memplugin/protos/*.proto
	$(BIN)/python -m tools.generate_fields

build/protoc/bin/protoc-gen-mypy:
	$(PYTHON) -m venv build/protoc
	build/protoc/bin/python -m pip install --quiet 'grpcio-tools==1.75.0' 'mypy-protobuf==3.7.0' setuptools

pictures: .venv/tested tb_memplugin/static/index.html chromium ## take the pictures of README.md and docs/ again
	$(BIN)/python frontend/pictures/take.py

clean: ## remove everything that was built and installed
	rm -rf .venv build dist *.egg-info frontend/node_modules tb_memplugin/static tb_memplugin/native/*/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Browser tests drive Debian's Chromium; any Chromium or Chrome on the PATH, or CHROMIUM=/path/to/one, does as well.
chromium:
	@if [ -n "$${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null; then exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; \
	else \
		echo "The browser tests need Chromium: sudo apt-get install chromium, or set CHROMIUM=/path/to/chromium" >&2; exit 1; \
	fi

.venv/bin/python:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or later is needed; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/installed: .venv/bin/python pyproject.toml setup.py $(NATIVE)
	TB_MEMPLUGIN_SKIP_FRONTEND=1 $(BIN)/python -m pip install --quiet --editable '.[tensorboard,xprof]'
	touch $@

# The package is installed already, so this adds what it needs for tests, and compiles nothing again.
.venv/tested: .venv/installed
	$(BIN)/python -m pip install --quiet 'tb-memplugin[dev]'
	touch $@

frontend/node_modules/.package-lock.json: frontend/package-lock.json
	@command -v npm >/dev/null || { echo "The page is built with npm: install Node.js 20 or later" >&2; exit 1; }
	cd frontend && npm ci
	touch $@

tb_memplugin/static/index.html: frontend/node_modules/.package-lock.json $(SOURCES)
	cd frontend && npm run build
	touch $@

.PHONY: help setup demo check unit-python unit-page test dist lint types bench fuzz client schemas protos pictures clean
.PHONY: chromium
