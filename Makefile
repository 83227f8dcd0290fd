# The list of commands. `make demo` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN ?= out/demo
DEVICE ?= cpu
# Two shared cores: OpenMP threads that spin at barriers cost a factor of 10 to 50 under contention.
export OMP_NUM_THREADS ?= 1

# uv installs the same packages several times faster; pip shows its progress
PIP = $(if $(shell command -v uv),uv pip install --python $(BIN)/python,$(BIN)/python -m pip install)
WHY ?= the demo run that results/demo holds

.PHONY: demo results test lint types unit docs bench golden clean

demo: $(VENV)/.serve                ## run the demo sweep on the real SGLang server, on the CPU (DEVICE=cuda: on a GPU)
	@echo "measuring eight arms on the shipped mini models: about seven minutes on two idle cores; it goes on where it was stopped"
	$(BIN)/specbench run demo --device $(DEVICE) --out $(RUN)
	$(BIN)/specbench tables $(RUN) --format md --out $(RUN)/tables > /dev/null
	$(BIN)/specbench plot $(RUN) --out $(RUN)/figures > /dev/null
	$(BIN)/specbench dashboard --run $(RUN) --out $(RUN)/site > /dev/null
	@echo "tables and figures: $(RUN)/tables, $(RUN)/figures"
	@echo "the answer, with charts: open $(RUN)/site/index.html"

results:                            ## results/demo, its baseline, a line of history: from a finished demo run
	rm -rf results/demo/cells results/demo/figures
	mkdir -p results/demo
	cp -r $(RUN)/cells results/demo/
	for file in sweep.toml plan.json table.md report.md; do [ ! -e $(RUN)/$$file ] || cp $(RUN)/$$file results/demo/; done
	$(BIN)/specbench plot results/demo --out results/demo/figures
	rm -f results/demo/figures/*.pdf results/demo/figures/*.png
	$(BIN)/specbench baseline accept results/demo --why "$(WHY)"
	$(BIN)/specbench gate results/demo --metric tau --history results/history.jsonl

test: $(VENV)/.dev lint types unit docs   ## everything CI runs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -m "not sglang" -n 2 --durations=10
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -m sglang --durations=10   # real servers: one at a time

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
	@echo "installing SGLang 0.5.23 with PyTorch into $(VENV), once: about 10 GB, minutes to half an hour by network"
	$(PIP) -e '.[serve]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing what the tests need into $(VENV), once: about 10 GB"
	$(PIP) -e '.[serve,train,dev]'
	touch $@ $(VENV)/.serve

clean:
	rm -rf $(VENV) out
