# Every target does its own set-up: see scripts/setup.sh. Nothing is needed but make, bash and Python,
# or, on Debian as root, nothing but make and bash.

PY = .venv/bin/python
PYTEST_ARGS ?= -n 2
OUT ?= demo_out
PROGRAMS ?= 5000
STATE ?= 20000
DERIVATIVES ?= 20000
SCRIPTS ?= 5000
VARIATIONS ?= 2000
WRAPPERS ?= 5000
FAULTS ?= 100
PYTHONS ?= python3.11 python3.12

.DEFAULT_GOAL := help
.PHONY: help build clients demo test truth bench conformance lint format docs asan cppsan guard plain triton wheel wheels dist clean distclean

help:
	@echo "make demo         build, train two small models, show the results (about three minutes)"
	@echo "make test         build, run the tests; install wheel and sdist in empty environments, try them"
	@echo "make truth        compiled = eager: every entry of the table, PROGRAMS=5000 random programs,"
	@echo "                  STATE=20000 programs over Python state, all ways to the derivatives of"
	@echo "                  every entry and of DERIVATIVES=20000 random functions, SCRIPTS=5000 random scripts"
	@echo "make clients      public packages under Flambeau against PyTorch's numbers (ARGS=--quick: a few)"
	@echo "make dist         several processes: models of many kinds train as one process does, FAULTS=100 random"
	@echo "                  faults, stores under load and sanitizers"
	@echo "make build        build the extension in place"
	@echo "make bench        speed beside NumPy; with TOOLS=folder beside PyTorch"
	@echo "make conformance  agreement with PyTorch (needs TOOLS=folder)"
	@echo "make docs         make the reference of operations, run every example of the documentation"
	@echo "make triton       check emitted Triton with Triton (downloads it), no GPU needed"
	@echo "make wheel        a wheel with its libraries, and the sdist, in dist/; make wheels: for 3.11 and 3.12"
	@echo "make lint         all static checks; make format: lay out Python and C++"
	@echo "make asan guard   the tests with sanitizers, or with guarded memory"
	@echo "make cppsan       programs in C++ with sanitizers of addresses and of threads"
	@echo "make plain        build and test without the optional libraries"
	@echo "make clean        remove what was built; make distclean: the environment as well"

build:
	@scripts/setup.sh
	@scripts/build.sh

demo:
	@scripts/setup.sh demo
	@scripts/build.sh
	@$(PY) examples/demo.py --out $(OUT)

test:
	@scripts/setup.sh test demo
	@scripts/build.sh
	@$(PY) -m pytest -q $(PYTEST_ARGS)
	@if [ -z "$(filter tests/%,$(PYTEST_ARGS))" ]; then \
		scripts/clients.sh --quick && scripts/wheel.sh sdist wheel check; fi

truth:
	@scripts/setup.sh test demo
	@scripts/build.sh
	@TRUTH=all $(PY) -m pytest -q $(PYTEST_ARGS) tests/compiler/test_truth.py
	@$(PY) -m tools.random_programs --count $(PROGRAMS) --seed 1
	@$(PY) -m tools.state_programs --count $(STATE) --seed 1
	@$(PY) -m tools.variation_programs --count $(VARIATIONS) --seed 1
	@$(PY) -m tools.wrapper_programs --count $(WRAPPERS) --seed 1 --jobs 2
	@TRUTH=all $(PY) -m pytest -q $(PYTEST_ARGS) tests/autograd/test_derivative_programs.py
	@$(PY) -m tools.derivative_programs --count $(DERIVATIVES) --seed 1
	@$(PY) -m tools.script_programs --count $(SCRIPTS) --seed 1

dist:
	@scripts/setup.sh test
	@scripts/build.sh
	@DIST=all $(PY) -m pytest -q tests/distributed
	@$(PY) -m tools.rank_faults --count $(FAULTS) --seed 1
	@FLAMBEAU_DISTRIBUTED_ENGINE=tcp $(PY) -m tools.rank_faults --count $(FAULTS) --seed 2
	@$(PY) -m tools.store_load --seed 1

clients:
	@scripts/setup.sh
	@scripts/build.sh
	@scripts/clients.sh $(ARGS)

bench:
	@scripts/setup.sh
	@scripts/build.sh
	@if [ -n "$(TOOLS)" ]; then TOOLS="$(TOOLS)" scripts/instruments.sh bench $(ARGS); \
	else $(PY) bench/overhead.py; fi

conformance:
	@scripts/setup.sh test
	@scripts/build.sh
	@TOOLS="$(TOOLS)" scripts/instruments.sh conformance $(ARGS)

lint:
	@scripts/setup.sh test dev
	@scripts/lint.sh

format:
	@scripts/setup.sh dev
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .
	@if command -v clang-format >/dev/null; then \
	find csrc -name '*.cpp' -o -name '*.h' | grep -vxFf scripts/unformatted.txt | xargs clang-format -i; fi

docs:
	@scripts/setup.sh test demo
	@scripts/build.sh
	@$(PY) tools/opdocs.py docs/ops
	@$(PY) tools/rundocs.py README.md CONTRIBUTING.md docs

cppsan:
	@scripts/setup.sh test demo
	@scripts/build.sh
	@scripts/cppsan.sh $(PYTEST_ARGS)

asan guard:
	@scripts/setup.sh test demo
	@scripts/$@.sh $(PYTEST_ARGS)

plain:
	@scripts/setup.sh test demo
	@scripts/build.sh
	@scripts/plain.sh

triton:
	@scripts/setup.sh
	@scripts/build.sh
	@scripts/triton.sh

wheel:
	@scripts/setup.sh
	@scripts/wheel.sh
	@ls -l dist

wheels:
	@scripts/setup.sh
	@scripts/wheel.sh sdist
	@for python in $(PYTHONS); do \
	$$python --version >/dev/null 2>&1 || { echo "no $$python here, going on without"; continue; }; \
	export PYTHON=$$python FLAMBEAU_VENV="$$PWD/build/package/with-$$(basename $$python)"; \
	scripts/setup.sh && scripts/wheel.sh wheel check || exit 1; done
	@ls -l dist

clean:
	rm -rf build dist demo_out docs/ops flambeau/*.so flambeau/lib

distclean: clean
	rm -rf .venv
