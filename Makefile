# Everything that is installed stays in .venv and .build; after the first time no network is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help docs setup demo test lint types bench fuzz load kills night faults faults-short wheel-smoke realcli lock clean

help:            ## this list
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ —/'

setup: $(READY)  ## what every other target needs, inside the checkout

$(READY): requirements/dev.txt pyproject.toml tools/bootstrap.sh
	sh tools/bootstrap.sh "$(PYTHON)" "$(VENV)"
	@touch $@

demo: $(READY)   ## watch a real loop finish a small task list, no key and no network
	@$(BIN)/ralph demo --dir .build/demo

test: $(READY)   ## the tests
	$(BIN)/python -m pytest -n auto -m "not realcli" $(PYTEST_ARGS)

lint: $(READY)   ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## mypy, strict
	$(BIN)/mypy

bench: $(READY)  ## the benchmarks, as ratios
	$(BIN)/python -m bench

fuzz: $(READY)   ## look for input that breaks a promise; SECONDS=60 TARGETS="rtf1 claude" REPRODUCE=FILE
	sh tools/fuzz.sh "$(BIN)/python"
	$(BIN)/python -m fuzz --seconds $(or $(SECONDS),10) $(if $(REPRODUCE),--reproduce $(REPRODUCE)) $(TARGETS)

load: $(READY)   ## twenty loops at once, each with an agent that prints 1 MB/s, for two minutes
	$(BIN)/python -m bench.load $(LOAD_ARGS)

kills: $(READY)  ## kill ralph at 300 random moments of its life and read back what it left
	PYTHONPATH=tests $(BIN)/python -m endurance.kills $(KILLS_ARGS)

night: $(READY)  ## a night in fast motion: 300 iterations with limits, crashes, kills of ralph and resumes
	PYTHONPATH=tests $(BIN)/python -m endurance.night $(NIGHT_ARGS)

faults: $(READY) ## what goes wrong in a night, made to happen: fault, expected, seen; SHORT=1 for a minute's worth
	$(if $(SHORT),,sh tools/realcli.sh claude codex)
	$(BIN)/python -m faults $(if $(SHORT),--short) $(if $(FAULTS),"$(FAULTS)")

faults-short:    ## the same in a minute or so, without the real CLIs
	@$(MAKE) --no-print-directory faults SHORT=1

wheel-smoke: $(READY) ## build the wheel, install it in a clean venv, run the demo with it
	sh tools/wheel-smoke.sh "$(BIN)/python"

docs: $(READY)   ## write the reference pages anew
	$(BIN)/python tools/reference.py

realcli: $(READY) ## whole loops with the real CLIs from npm and a scripted model; AGENTS="claude codex" for some
	sh tools/realcli.sh $(AGENTS)
	REALCLI_AGENTS="$(AGENTS)" $(BIN)/python -m pytest -n 2 --dist loadgroup -m realcli tests/realcli $(PYTEST_ARGS)

lock: $(READY)   ## write requirements/*.txt anew (needs the network)
	sh tools/lock.sh "$(PYTHON)"

clean:           ## remove all that was installed or built here
	rm -rf $(VENV) .build .npm dist
