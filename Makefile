# The two commands of a newcomer are `make demo` and `make test`. Both begin with `make install`,
# which leaves stamps in .venv, so that the second run does nothing twice.

PYTHON  ?= python3
WORKERS ?= 3
SCALE   ?= 0.01
VENV    := .venv
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --no-input
JAVA    := $(VENV)/terascope-java-home

# A recorded Java that has been removed since is looked for again.
$(shell test ! -f $(JAVA) || test -x "`cat $(JAVA)`/bin/java" || rm -f $(JAVA))

.DEFAULT_GOAL := help
.PHONY: help install demo test soak durations bench lint format lock clean

help:
	@echo "make demo     install, then find a SYN flood in two minutes of synthetic traffic"
	@echo "make test     install, then check and test everything (WORKERS=$(WORKERS) processes)"
	@echo "make soak     long tests, many more random query sets and streams, and the tests of the benches"
	@echo "make durations  run all tests and record how long each file takes"
	@echo "make bench    Terascope beside other engines, on small data (SCALE=$(SCALE))"
	@echo "make install  the environment .venv with the command .venv/bin/terascope, and Java"
	@echo "make lint     ruff, mypy and the import contracts"
	@echo "make format   rewrite the sources in the one format"
	@echo "make lock     choose the newest allowed versions anew and write requirements.lock"
	@echo "make clean    remove the environment and every cache"

install: $(VENV)/.package $(JAVA) $(VENV)/.classes $(VENV)/.kernels

demo: install
	@$(BIN)/terascope demo

# Hundreds of processes start in a run: where the environment forbids to keep what Python compiles,
# each of them would compile all modules again, and pytest its assertions.
test soak durations: export PYTHONDONTWRITEBYTECODE =

# Lint runs beside the tests, and its output comes in one piece when it is done; both must pass. Of
# three processes on two cores one is often waiting for a process that it has killed.
test: install $(VENV)/.tshark
	@lint() { said=`$(MAKE) --no-print-directory lint 2>&1`; code=$$?; echo "$$said"; return $$code; }; \
	lint & linting=$$!; \
	$(BIN)/pytest -n $(WORKERS); tested=$$?; \
	wait $$linting || { echo "make lint failed, see above"; exit 1; }; \
	exit $$tested

# All tests that `make test` leaves out, many more random cases, and the tests of the benches.
soak: install
	TERASCOPE_SOAK=1 TERASCOPE_SEEDS=400 TERASCOPE_SPARK_SEEDS=6 TERASCOPE_STREAM_SEEDS=200 \
		TERASCOPE_LOCAL_SEEDS=100 TERASCOPE_STREAM_SPARK_SEEDS=3 \
		$(BIN)/pytest -n $(WORKERS) tests/properties tests/golden tests/spark tests/session \
		tests/cli tests/connectors tests/demo tests/examples tests/cluster
	TERASCOPE_SOAK=1 TERASCOPE_SEEDS=60 \
		$(BIN)/pytest -n $(WORKERS) tests/kernels tests/execute tests/physical tests/stream \
		tests/sharing tests/functions tests/reference tests/syntax tests/partitioning
	$(BIN)/pytest -n $(WORKERS) -m bench

# Needed when tests have become much longer or shorter: `make test` begins with the longest.
durations: install
	$(BIN)/pytest -n $(WORKERS) --record-durations

bench: install
	for name in queries78 set50 decode; do $(BIN)/terascope bench $$name --scale $(SCALE) || exit; done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix-only --exit-zero .
	$(BIN)/ruff format .

# No hashes in the lock: a machine without internet may then install from its own folder of wheels.
# The index comes from the configuration of whoever runs it and must never stand in the file.
lock: install
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --all-extras \
		--no-emit-index-url --no-annotate \
		--custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) scripts/create_venv.py $(VENV)
	@touch $@

$(VENV)/.packages: requirements.lock $(VENV)/.created
	@echo "installing the packages of requirements.lock (several minutes the first time)"
	@$(PIP) install --quiet -r requirements.lock
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.packages
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(JAVA): $(VENV)/.packages
	@$(BIN)/python scripts/ensure_java.py

# Spark starts in half the time with it, and without it, too: nothing depends on its success.
$(VENV)/.classes: $(VENV)/.package $(JAVA)
	@echo "writing down the classes that Spark starts with (once, under a minute)"
	@$(BIN)/python -m terascope.training || true
	@touch $@

# The first run of a set would compile them, and the first tests of all processes the same ones.
$(VENV)/.kernels: $(VENV)/.package
	@echo "compiling the kernels (once, under a minute)"
	@$(BIN)/python scripts/compile_kernels.py || true
	@touch $@

$(VENV)/.tshark: $(VENV)/.created
	@$(BIN)/python scripts/offer_tshark.py
	@touch $@
