# SPDX-License-Identifier: GPL-2.0
# make lab        builds, boots, measures and compares; LAB="--release 7.3" adds options
# make test       all tests except those of make regress; LAYERS="kernel" runs only those of a layer
# make test-fast  only the short tests that need no kernel
# make regress    other configurations, the kernel's own tests, stressors: takes hours; a second run
#                 resumes an interrupted one; MINUTES=60 starts no test after an hour
# make evidence  writes the tables of docs/evidence from the results there; SET=NAME only one;
#                 MEASURE=1 measures first, but predicted-programs (as root) and history-counts
#                 only by SET=NAME
# make golden     writes the texts that tests compare (tests/golden.txt, tests/data/golden) again
# make lint       only the style and type checks
# make lock       writes requirements.lock and requirements-user.lock from pyproject.toml

PYTHON := .venv/bin/python
# As many tests at once as there are cores.
PYTEST := $(PYTHON) -m pytest --numprocesses=auto
LAB ?=
LAYERS ?= not regress

.PHONY: lab test test-fast regress evidence golden lint setup lock

lab:
	@./setup lab
	@.venv/bin/firsttouch lab $(LAB)

# One kernel after the other, before the tests: two builds at once exceed the tests' time limits.
test: setup
	@for kernel in "6.12 --arm stock" 6.12 7.3; do \
	  .venv/bin/firsttouch kernel build --release $$kernel || exit; done
	@$(PYTEST) -m "$(LAYERS)"

test-fast: setup
	@$(PYTEST) -m "not kernel and not long and not regress"

regress:
	@./setup regress
	@$(PYTEST) -m regress --junitxml out/regress/junit.xml \
	  $(if $(MINUTES),--session-timeout $$((60 * $(MINUTES))))

evidence: setup
	@$(PYTHON) -m docs.evidence.draw.command $(if $(MEASURE),--measure) $(addprefix --set ,$(SET))

golden: setup
	@$(PYTHON) -m pytest -q --numprocesses=0 --durations=0 --golden

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@! git grep -n 'type: ignore' -- docs firsttouch ':!firsttouch/tables.py'

setup:
	@./setup

# What is needed with group $(1) of pyproject.toml, into $(2)
compile = { printf '\# SPDX-License-Identifier: GPL-2.0\n\# Written by `make lock` from pyproject.toml.\n' && \
  .venv/bin/uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 \
  --group $(1) pyproject.toml; } >$(2).new && mv $(2).new $(2)

lock:
	@$(call compile,dev,requirements.lock)
	@$(call compile,user --constraint requirements.lock,requirements-user.lock)
