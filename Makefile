# Every target sets up what it needs under this checkout; nothing is installed outside of it.
PYTHON ?= python3
# Those that it runs with as well, on machines that have them.
PYTHONS ?= python3.12 python3.13
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What runs, without what tests and lints it.
RUNS := $(VENV)/.runs
# With the page besides.
PAGE := $(VENV)/.page
# With what builds the documentation besides.
SITE := $(VENV)/.site
VECTORS ?= tests/data/vectors
# The folder with the engine's compiled classes.
ENGINE ?=
# The engine that `make test-engine` tries, as whom, and its other options.
URL ?=
USER ?=
ARGS ?=
# Twice as many workers as cores, since tests wait more than they compute. One that dies or hangs ends the run.
PYTEST_ARGS ?= -n $(shell expr 2 \* $$(nproc)) --max-worker-restart=0
# The SQLite of EL8, and the tests that run under it; those of all that makes digests.
OLD_SQLITE := .work/old-sqlite/libsqlite3.so.0
ON_THE_STORE := tests/placement/store tests/enforcer/leaders
ON_DIGESTS := tests/placement/engine/connection tests/placement/store \
    tests/proxy/test_contract.py tests/integration/test_demo.py
# What the RPMs hold of others, as locked.
WHEELS := .work/rpm/wheels/.fetched
# Tests start a thousand interpreters: each would compile all of the project anew where this is set.
export PYTHONDONTWRITEBYTECODE :=

QUICK := not system and not nightly
# Tests sync small files all the time: in memory, where there is room, none waits for a disk. Some are another user.
IN_MEMORY := if [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null; then \
	TMPDIR=$$(mktemp -d /dev/shm/ovirt-XXXX) && chmod 1777 $$TMPDIR && export TMPDIR \
	&& trap 'rm -rf $$TMPDIR' EXIT; fi
# Tests by their marks, in one run, shared out by file or by group: run-tests MARKS,ARGUMENTS
run-tests = $(IN_MEMORY); $(BIN)/python -m pytest $(PYTEST_ARGS) -m "$(1)" $(2)
# Some folders have none of a mark.
OR_NONE := || [ $$? -eq 5 ]

.PHONY: help demo page screenshots site release test test-engine test-system test-nightly test-long test-properties test-platforms mutations test-pythons lint bench soak conformance engine-conformance reference rpms rpm-lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(if $(KEEP),$(PAGE),$(RUNS)) ## a simulated engine, violated rules, and their repair (SEED=n, KEEP=1)
	@$(BIN)/python -m demo $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep)

page: $(PAGE) ## the page of a large simulated cluster (HOSTS=n, VMS=n, SEED=n)
	@$(BIN)/python -m demo --hosts $(or $(HOSTS),500) $(if $(VMS),--vms $(VMS)) $(if $(SEED),--seed $(SEED))

screenshots: $(READY) ## the pictures of README, by the machine's Chromium (VIEWS=1: every view in every state, into pictures/)
	@$(BIN)/python -m demo.states $(if $(VIEWS),--every-view --width 1440 1024 390 --scheme light dark,--readme)

test: $(READY) ## the quick tests: rules, planning, parsing, answers, units, and each seam once
	$(call run-tests,$(QUICK),--dist loadfile)

test-system: $(READY) $(WHEELS) ## what is real: processes, servers, browsers, PostgreSQL, packages
	$(call run-tests,system and not nightly,--dist loadgroup)

test-nightly: test-long test-properties test-platforms mutations ## what takes long: soak, RPMs, foreign clients, properties, platforms, slips

test-long: $(READY) $(WHEELS) ## the tests that are marked so, of some folders or all (ONLY="FOLDERS", MARKS="EXPRESSION")
	$(call run-tests,$(or $(MARKS),nightly),--dist loadgroup --timeout 1800 $(ONLY)) $(OR_NONE)

test-properties: $(READY) ## the properties, with many more examples than make test draws (EXAMPLES=n, ONLY="FOLDERS")
	export EXAMPLES=$(or $(EXAMPLES),1000); $(call run-tests,hypothesis and $(QUICK),--dist loadgroup --timeout 1800 $(ONLY)) $(OR_NONE)

test-platforms: $(READY) $(OLD_SQLITE) ## what concerns them, under the SQLite of EL8, and with the digests refused that FIPS mode refuses
	LD_PRELOAD=$(CURDIR)/$(OLD_SQLITE) $(BIN)/python -c 'import sqlite3; assert sqlite3.sqlite_version == "3.26.0"'
	export LD_PRELOAD=$(CURDIR)/$(OLD_SQLITE); $(call run-tests,$(QUICK),--dist loadfile $(ON_THE_STORE))
	export PYTHONPATH=tests/fips; $(call run-tests,$(QUICK),--dist loadfile $(ON_DIGESTS))

mutations: $(READY) ## type slips into copies of the project; each must be noticed by a test (ONLY="WORDS" of their rooms)
	$(IN_MEMORY); $(BIN)/python -m tests.mutations $(ONLY)

test-pythons: ## the quick tests, under each of the other Pythons that it runs with (PYTHONS="...")
	@for python in $(PYTHONS); do \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])') || { \
	        echo "There is no $$python here; PYTHONS=\"...\" names others." >&2; exit 2; }; \
	    echo "Python $$version:"; \
	    $(MAKE) PYTHON="$$python" VENV=.work/venv-$$version test || exit 1; \
	done

lint: $(READY) ## style, types, who may import whom, what nobody calls, and the rules for files and names
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=service:placement:proxy:enforcer:web:simulator $(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/python -m tools.house_rules

test-engine: $(RUNS) ## try this release on an engine (URL=..., USER=..., ARGS="..."; docs/acceptance.md)
	@test -n "$(URL)" || { echo "Name the engine: make test-engine URL=https://ENGINE/ovirt-engine/api USER=admin@internal" >&2; exit 2; }
	@$(BIN)/python -m tools.acceptance --url "$(URL)" --user "$(or $(filter %@%,$(USER)),admin@internal)" $(ARGS)

bench: $(READY) ## speed, as ratios measured in one run
	$(BIN)/python -m tools.benchmarks

soak: $(READY) ## a million calls to the proxy, while workers are killed and VMs move (CALLS=n)
	$(BIN)/python -m tests.endurance.soak $(if $(CALLS),--calls $(CALLS))

conformance: $(READY) ## the engine's own verdicts against ours (VECTORS=DIR)
	@$(BIN)/python -m tools.conformance $(VECTORS)

engine-conformance: $(READY) ## our copies of the engine's units against the engine itself (ENGINE=DIR)
	@test -n "$(ENGINE)" || { echo "Name the folder with the engine's classes: make engine-conformance ENGINE=DIR" >&2; exit 2; }
	@$(BIN)/python -m tools.engine_conformance "$(ENGINE)"

reference: $(READY) ## write what is made from the code: references, JSON Schema, man pages, completions
	$(BIN)/python -m tests.docs.generated

site: $(SITE) ## the documentation as HTML, below .work/site/html
	$(BIN)/python -m release.artifacts

release: $(READY) $(WHEELS) ## all files of a release, below dist; the commit must bear the tag of its version (needs rpmbuild)
	@$(BIN)/python -m release

rpms: $(READY) $(WHEELS) ## the RPMs and their sources, in .work/rpm/built, of a Python 3.12 (RPM_PYTHON=FILE; needs rpmbuild)
	rm -rf .work/rpm/built
	packaging/rpm/build.sh $(CURDIR)/$(BIN)/python .work/rpm/wheels .work/rpm/built

rpm-lock: $(READY) ## lock again what the RPMs hold of others, with hashes
	packaging/rpm/lock.sh $(BIN)/python .work/rpm/locking

$(WHEELS): packaging/rpm/fetch.sh packaging/rpm/build-3.12.lock packaging/rpm/requirements-3.12.lock
	packaging/rpm/fetch.sh $(BIN)/python $(@D)
	@touch $@

$(OLD_SQLITE): tests/old_sqlite.sh
	tests/old_sqlite.sh $@

clean: ## remove all that the other targets made
	rm -rf $(VENV) .work build dist *.egg-info simulator/build simulator/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNS): setup.cfg pyproject.toml setup.py simulator/setup.cfg packaging/check-system.sh
	@packaging/check-system.sh $(PYTHON)
	@echo "Installing what it needs into $(VENV); that takes a minute or two."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --editable simulator
	@touch $@

$(PAGE): $(RUNS)
	@echo "Installing what the page needs into $(VENV)."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[web]' --editable simulator
	@touch $@

$(SITE): $(RUNS)
	@echo "Installing what builds the documentation into $(VENV)."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]' --editable simulator
	@touch $@

$(READY): $(RUNS)
	@echo "Installing what tests and lint need into $(VENV); that takes some minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,docs,release]' --editable simulator
	@touch $@
