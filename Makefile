# `make` alone lists what there is to do. PYTHON=... names another interpreter.
PYTHON ?= .venv/bin/python
BIN = $(dir $(PYTHON))

.PHONY: help install test test-all lint format pictures docs golden lock release

help:  ## what there is to do
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install:  ## a virtual environment with everything that tests need
	python3 -m venv --upgrade-deps .venv
	$(PYTHON) -m pip install -e '.[dev]'
	$(BIN)judge models pull smollm2-135m

test:  ## the default tests (3 minutes on two cores)
	$(PYTHON) -m pytest -q -n 2

test-all:  ## every test, also those marked slow or model
	$(PYTHON) -m pytest -q -n 2 -m ""

lint:  ## ruff, formatting, types, spelling
	$(BIN)ruff check .
	$(BIN)ruff format --check .
	$(BIN)mypy judge graphs
	$(BIN)codespell

format:  ## put the code into ruff's form
	$(BIN)ruff check --fix .
	$(BIN)ruff format .

pictures:  ## docs/images, taken from the pages by a browser
	$(PYTHON) docs/make_pictures.py

docs:  ## build/site, from docs/; its reference from the code
	$(PYTHON) docs/make_reference.py
	$(PYTHON) -m sphinx -q -W --keep-going -j auto docs build/site

golden:  ## the prompts in tests/questions/golden, after a change of one: read the diff
	$(PYTHON) -m pytest -q tests/questions --update-golden

lock:  ## uv.lock, from the newest releases that pyproject.toml allows
	uv lock --upgrade

release:  ## build/dist: the sdist and the wheel that .github/workflows/publish.yml uploads
	rm -rf build/dist
	$(PYTHON) -m pip install --quiet build twine
	$(PYTHON) -m build --outdir build/dist
	$(PYTHON) -m twine check --strict build/dist/*
