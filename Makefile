# Two commands do everything for a newcomer: `make demo` and `make test`.
# Each target installs what it needs: a virtual environment in .venv from the locked requirements,
# and, as root on Debian, Maven, a JDK, PostgreSQL, MariaDB, sshd, Samba, Apache, LibreOffice, Chromium, Node, zsh, fish, nginx and wget by apt.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Tests start hundreds of processes: each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
URL ?=
PAGES ?=
PORT ?= 8765
FUZZ_SECONDS ?= 30
ARGS ?=
REVISION ?= main
# On two processors four: half of the time a test waits, for what it started or for a delay that it asked for.
WORKERS ?= 4
UV ?= $(BIN)/uv
LOWEST := var/lowest
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"

# Beside an SQLite file with the embedded index, which tests use where nothing else is said.
PAIRS := postgresql+local sqlite+solr postgresql+solr
# Each store and each index once more; how they are paired is the soak's.
MATRIX := SEARCHCRAWL_TEST_MATRIX=postgresql+solr
# Where tests that take long are: the others need not be loaded by each process.
LONG := tests/acceptance tests/browser_laws tests/integration
# What `make check` runs.
CHECKS := tests/test_layout.py tests/test_docs.py tests/test_readers.py
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
on_each_pair = for pair in $(PAIRS); do \
	export SEARCHCRAWL_TEST_STORE=$${pair%+*} SEARCHCRAWL_TEST_INDEX=$${pair\#*+}; \
	$(PYTEST) tests/acceptance; $(BIN)/python -m pytest -m "soak and pairs" tests/acceptance; done

.PHONY: help demo site test extended check style readers commands-of-docs fuzz bench turns hosts files rows decisions scale results solr soak docs venv lock lowest clean

help:  ## show these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 8

demo: $(STAMP)  ## crawl the test site, search it, change it, crawl and search again; URL=… [PAGES=100]: any other site
	$(BIN)/python -m tests.site.demo $(URL) $(PAGES)

site: $(STAMP)  ## serve the test site on port 8765 for `scrapy crawl demo` (.venv/bin/scrapy); PORT=…
	$(BIN)/python -m tests.site --port $(PORT)

test: $(STAMP)  ## the tests of each part, with a real Solr and PostgreSQL; ARGS="-k robots" picks some, extended ones too
	scripts/bootstrap java postgresql mariadb sftp smb webdav office shells browser node
	$(PYTEST) $(if $(ARGS),$(ARGS),-m "not soak and not docs and not extended" $(CHECKS:%=--ignore=%))

extended: $(STAMP)  ## the tests that take long: kills, power cuts, whole lives, rendering, each store and each index
	scripts/bootstrap java postgresql mariadb sftp smb webdav office shells browser node
	$(MATRIX) $(PYTEST) -m "extended and not soak" $(if $(ARGS),$(ARGS),$(LONG))

docs: $(STAMP)  ## the documentation, in docs/_build; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/trees docs docs/_build/html
	@echo "docs/_build/html/index.html"

check: $(STAMP)  ## ruff, mypy --strict, import layers, layout, readers; that docs and code agree, and the commands in docs run
	$(MAKE) --no-print-directory --jobs=3 --output-sync commands-of-docs readers style docs

style: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

readers: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not soak" $(CHECKS)

# Each page is worked through by itself.
commands-of-docs: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist load -m "not soak" tests/test_docs_commands.py

bench: $(STAMP)  ## searchcrawl and other crawlers on about 3,850 pages; ARGS="--rounds 1 --only abe" does less
	scripts/bootstrap bench java
	$(BIN)/python -m benchmarks.bench $(ARGS)

turns: $(STAMP)  ## the CPU that a change costs: this checkout and another in turns; REVISION=main [ARGS="--rounds 20"]
	scripts/bootstrap bench java
	$(BIN)/python -m benchmarks.turns $(REVISION) $(ARGS)

hosts: $(STAMP)  ## 50 to 10,000 hosts at once, delays of 0, 1 and 5 s, beside plain Scrapy; ARGS="--hosts 300 --delays 1 --no-peer"
	$(BIN)/python -m benchmarks.hosts $(ARGS)

files: $(STAMP)  ## trees of files: listed, first run, second run, a renamed folder; ARGS="--files 1000000 --folders 1"
	$(BIN)/python -m benchmarks.files $(ARGS)

rows: $(STAMP)  ## how long 10^6 rows of a database take to be listed; ARGS="--rows 1e5 --database postgresql --crawl"
	scripts/bootstrap postgresql mariadb
	$(BIN)/python -m benchmarks.rows $(ARGS)

decisions: $(STAMP)  ## how often each rule of thumb is wrong on manuals, and what traps cost; ARGS="--only postfix-doc", ARGS=--traps
	scripts/bootstrap bench
	$(BIN)/python -m benchmarks.decisions $(ARGS)

scale: $(STAMP)  ## the store with 10^4 to 10^6 URLs, SQLite and PostgreSQL; ARGS="--sizes 1e7 --store sqlite"
	scripts/bootstrap postgresql
	$(BIN)/python -m benchmarks.scale $(ARGS)

results: $(STAMP)  ## put the figures of bench, hosts and scale into benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks.results

solr: $(STAMP)  ## a real Solr for development
	scripts/bootstrap java
	$(BIN)/python solr/server/run.py $(ARGS)

fuzz: $(STAMP)  ## every reader of outside bytes with inputs as odd as can be; FUZZ_SECONDS=600: so long for each test
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTEST) --dist load tests/fuzz $(ARGS)

soak: $(STAMP)  ## kill -9 at every passing of every failpoint, all stores with all indexes, a long fuzz; takes long
	scripts/bootstrap java postgresql mariadb sftp smb webdav office browser node
	$(MATRIX) $(BIN)/python -m pytest -m soak $(ARGS)
	$(if $(ARGS),,$(MAKE) fuzz FUZZ_SECONDS=300)
	$(if $(ARGS),,$(on_each_pair))

venv: $(STAMP)  ## the virtual environment alone

lock: $(STAMP)  ## resolve pyproject.toml anew into requirements/*.txt (needs uv; UV=…)
	$(LOCK) --upgrade -c requirements/bounds.in -o requirements/run.txt pyproject.toml
	$(LOCK) -c requirements/run.txt --extra postgresql --extra mysql --extra parquet --extra sftp --extra smb --extra s3 --extra scrapyd -o requirements/server.txt pyproject.toml
	$(LOCK) --upgrade -c requirements/server.txt --extra test --extra dev --extra docs -o requirements/dev.txt pyproject.toml

lowest: $(STAMP)  ## unit and integration tests with the oldest libraries that pyproject.toml admits (needs uv; UV=…)
	$(UV) venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[postgresql,mysql,parquet,scrapyd,test]'
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not soak and not extended" tests/unit tests/integration

clean:  ## remove what the targets made, but for the virtual environment
	rm -rf var docs/_build benchmarks/out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(STAMP): requirements/dev.txt pyproject.toml
	scripts/bootstrap python
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
