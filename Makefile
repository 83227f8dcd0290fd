# The list of commands. `make demo` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN ?= out/demo
DEVICE ?= cpu
# Two shared cores: OpenMP threads that spin at barriers cost a factor of 10 to 50 under contention.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test lint types unit docs bench golden clean

demo: $(VENV)/.serve                ## run the demo sweep on the real SGLang server, on the CPU (DEVICE=cuda: on a GPU)
	$(BIN)/specbench run demo --device $(DEVICE) --out $(RUN)
	$(BIN)/specbench tables $(RUN) --format md --out $(RUN)/tables
	$(BIN)/specbench plot $(RUN) --out $(RUN)/figures
	$(BIN)/specbench dashboard --run $(RUN) --out $(RUN)/site
	@echo "table:     $(RUN)/table.md"
	@echo "figures:   $(RUN)/figures"
	@echo "dashboard: $(RUN)/site/index.html"

test: $(VENV)/.dev lint types unit docs   ## everything CI runs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q --durations=15

docs: $(VENV)/.dev                  ## generated pages are up to date
	$(BIN)/cog -P --check docs/*.md README.md

bench: $(VENV)/.dev                 ## benchmarks: they print numbers, they do not pass or fail
	for script in bench/*.py; do PYTHONPATH=. $(BIN)/python $$script || exit 1; done

golden: $(VENV)/.dev                ## rewrite generated pages and golden files after a deliberate change
	$(BIN)/cog -P -r docs/*.md README.md
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q tests --update-golden

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.serve: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e '.[serve]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e '.[serve,train,dev]'
	touch $@ $(VENV)/.serve

clean:
	rm -rf $(VENV) out
