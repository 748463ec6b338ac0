# `make` alone lists what there is to do.
PYTHON ?= python3.11
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
export TORCH_CPU_INDEX
# Wheels are installed without bytecode: it is written when a file is first loaded.
unexport PYTHONDONTWRITEBYTECODE
PY := .venv/bin/python

.PHONY: help setup setup-dev chromium run test soak lint bench screenshots lock

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## make .venv and install the runtime lock into it
	@$(PYTHON) requirements/install.py .venv requirements.txt

setup-dev: setup ## add the tools for tests and checks
	@$(PYTHON) requirements/install.py .venv requirements/dev.txt

run: setup ## start everything; Ctrl-C stops it
	@$(PY) manage.py up $(ARGS)

test: setup-dev chromium ## checks and all tests, with short forms of the long ones
	@PATH="$(CURDIR)/.venv/bin:$$PATH" tests/all.sh "not soak"

soak: setup-dev chromium ## the long forms of the long cases
	@$(PY) -m pytest -m "soak and not browser"
	@$(PY) -m pytest -m "soak and browser"
	@$(PY) -m tests.postgres $(PY) -m pytest -m heavy tests/web

lint: setup-dev ## style, types, borders, sizes, templates, migrations, deployment
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy trainer webapp requirements
	@.venv/bin/djlint templates --lint --quiet
	@.venv/bin/lint-imports --no-cache
	@$(PY) -m pytest -q tests/test_architecture.py -k "longer or name"
	@$(PY) manage.py makemigrations --check --dry-run
	@PRODUCTION=true SECRET_KEY=$$($(PY) -c "import secrets; print(secrets.token_urlsafe(60))") \
		SITE_URL=https://potluck.example.org SWARM_HOST=potluck.example.org \
		$(PY) manage.py check --deploy --fail-level WARNING

chromium: ## see that a Chromium is there for the browser tests
	@tests/chromium.sh

bench: setup-dev ## list the benchmarks, or run one: make bench NAME=startup
	@$(PY) -m bench $(NAME)

screenshots: setup-dev chromium ## the README's pictures, from a real swarm
	@$(PY) -m docs.screenshots

lock: setup-dev ## resolve requirements/*.in into the locks (needs uv)
	@$(PY) requirements/lock.py
