# Everything here works from a clean clone with python3 (3.11 to 3.14) and make alone: the first
# target that needs it makes a virtual environment in the tree.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RECIPE_READY := .venv-recipe/.ready
CHROMIUM = $(or $(TOKFORGE_CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint format wheel pictures chromium clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

$(READY): pyproject.toml tools/new_venv.py
	$(PYTHON) tools/new_venv.py $(VENV) --editable '.[dev]'
	@touch $@

$(RECIPE_READY): tools/requirements-demo-pair.txt tools/new_venv.py
	$(PYTHON) tools/new_venv.py $(@D) --requirement tools/requirements-demo-pair.txt
	@touch $@

demo: $(READY)  ## offline: install the embedded pair, verify, resolve, run it paired and plain
	@TOKFORGE_HOME=$(CURDIR)/$(VENV)/demo-home $(BIN)/tokforge demo

lint: $(READY)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tools

test: lint  ## lint and the fast tests; what is not installed is skipped and named
	$(PYTEST) -m "not slow"

# Looked for before minutes of tests: the page's need it, and none may be skipped.
chromium:
	@test -n "$(CHROMIUM)" || { \
	  echo "The chat page is tested in Chromium, and there is none: apt-get install chromium"; \
	  echo "(or TOKFORGE_CHROMIUM=/path/to/it make test-all)"; exit 1; }

test-all: chromium lint $(RECIPE_READY)  ## every test, on the lowest and the highest Python found; no skips
	$(PYTEST) --no-skips -m "not slow"
	$(BIN)/python -m pytest --no-skips -m slow
	$(BIN)/python tools/test_interpreters.py

format: $(READY)  ## rewrite the sources as ruff likes them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: $(READY)  ## build the wheel into dist/
	$(BIN)/python -m build --wheel

pictures: $(READY) chromium  ## take the pictures of docs/server.md again
	$(BIN)/python tests/page_pictures.py docs

clean:  ## remove what the targets above made
	rm -rf .venv .venv-* dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
