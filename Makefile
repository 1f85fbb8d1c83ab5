# Everything that is installed goes into .venv, .build and .npm. After the first run no network is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Many tests wait for deadlines, so two workers per core keep the cores busy.
WORKERS ?= $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 1))))

.PHONY: help setup demo test endurance lint types bench fuzz load kills night faults faults-short fresh wheel-smoke docs realcli lock clean

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ —/'

setup: $(READY)  ## install what the other targets need, inside the checkout

$(READY): requirements/dev.txt pyproject.toml tools/bootstrap.sh
	sh tools/bootstrap.sh "$(PYTHON)" "$(VENV)"
	@touch $@

demo: $(READY)   ## watch a real loop finish a small task list; needs no key and no network
	@$(BIN)/ralph demo --dir .build/demo

test: $(READY)   ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not realcli and not endurance" $(PYTEST_ARGS)

endurance: $(READY) ## run the tests with much data, many restarts or many kills: about a minute
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m endurance $(PYTEST_ARGS)

lint: $(READY)   ## run ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## run mypy (strict)
	$(BIN)/mypy

bench: $(READY)  ## run the benchmarks; results are ratios
	$(BIN)/python -m bench

fuzz: $(READY)   ## search for input that breaks a guarantee; SECONDS=60 TARGETS="rtf1 claude" REPRODUCE=FILE
	sh tools/fuzz.sh "$(BIN)/python"
	$(BIN)/python -m fuzz --seconds $(or $(SECONDS),10) $(if $(REPRODUCE),--reproduce $(REPRODUCE)) $(TARGETS)

load: $(READY)   ## run twenty loops at once for two minutes; each agent prints 1 MB/s
	$(BIN)/python -m bench.load $(LOAD_ARGS)

kills: $(READY)  ## kill ralph at 300 random moments and check the journals
	PYTHONPATH=tests $(BIN)/python -m endurance.kills $(KILLS_ARGS)

night: $(READY)  ## simulate a night: 300 iterations with rate limits, crashes, kills and resumes
	PYTHONPATH=tests $(BIN)/python -m endurance.night $(NIGHT_ARGS)

faults: $(READY) ## inject faults and compare the results with what must happen; SHORT=1 takes a minute
	$(if $(SHORT),,sh tools/realcli.sh claude codex)
	$(BIN)/python -m faults $(if $(SHORT),--short) $(if $(FAULTS),"$(FAULTS)")

faults-short:    ## the same as `make faults SHORT=1`, without the real CLIs
	@$(MAKE) --no-print-directory faults SHORT=1

fresh:           ## run `make demo` and `make test` in a new Debian with only Python, make and git (needs root)
	$(PYTHON) tools/fresh.py

wheel-smoke: $(READY) ## build the wheel, install it in a clean environment, run the demo with it
	sh tools/wheel-smoke.sh "$(BIN)/python"

docs: $(READY)   ## regenerate the reference pages
	$(BIN)/python tools/reference.py

realcli: $(READY) ## run whole loops with the real CLIs from npm and a scripted model; AGENTS="claude codex" for some
	sh tools/realcli.sh $(AGENTS)
	REALCLI_AGENTS="$(AGENTS)" $(BIN)/python -m pytest -n 2 --dist loadgroup -m realcli tests/realcli $(PYTEST_ARGS)

lock: $(READY)   ## update requirements/*.txt (needs the network)
	sh tools/lock.sh "$(PYTHON)"

clean:           ## remove everything that was installed or built here
	rm -rf $(VENV) .build .npm dist
