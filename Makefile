# `make` lists the targets.

PYTHON ?= python3
VENV := .venv
DOCS_VENV := .venv-docs
BENCH_ARGS ?=
CAMPAIGN_ARGS ?=
SEQUENCES ?= 1000
STEPS ?= 10000
OUTPUTS ?= joint_position,joint_trajectory,joint_velocity,twist
SEED ?= 1
DEMO_ARGS ?=
PYTEST_ARGS ?=
# Twice as many as two cores, as tests of nodes mostly wait. Each file in one process: its tests share what it starts.
# Files in the order of test/conftest.py, not by their numbers of tests: a file of two tests may take a minute.
AT_ONCE := -n 4 --dist loadfile --no-loadscope-reorder
PYTEST = $(VENV)/bin/python -m pytest -q --timeout 600 test
# What failed beside other tests is run once more alone: simulated arms and drivers run in real time, and a machine that
# stands still for two seconds breaks the best of them. What fails twice has failed. The summary names what passed now.
AGAIN = echo '=== Tests failed beside others. They are run once more, alone:' \
	&& $(PYTEST) -rsfEp --last-failed --last-failed-no-failures none
UV ?= uv

# Nothing started from here talks to, or is disturbed by, ROS on another machine.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
export ROS_DOMAIN_ID ?= 42

# The ROS wheels leave these in the environment of their children; another environment's are wrong here.
ifdef _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE LD_LIBRARY_PATH
endif

# Compiled modules are kept: otherwise every process that imports torch compiles it again, for 5 s.
unexport PYTHONDONTWRITEBYTECODE

# Where ROS comes from: the sourced installation if its rclpy imports, else the pinned wheels.
ROS := wheels
ifneq ($(and $(ROS_DISTRO),$(AMENT_PREFIX_PATH)),)
ROS := $(shell $(PYTHON) -c 'import sys, rclpy; sys.exit(sys.prefix != sys.base_prefix)' \
	2>/dev/null && echo $(ROS_DISTRO) || echo wheels)
endif
ifeq ($(ROS),wheels)
export AMENT_PREFIX_PATH := $(abspath $(VENV))
endif

# Written last, so an interrupted installation starts over; named after ROS, so sourcing it does too.
PINS_STAMP := $(VENV)/.pins-$(ROS)
PACKAGE_STAMP := $(VENV)/.package

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: venv
venv: $(PACKAGE_STAMP) ## create .venv from the pinned requirements, with mher_ros in it

$(PINS_STAMP): requirements/create_venv.sh requirements/base.txt requirements/dev.txt requirements/ros.txt \
		requirements/torch.txt
	@PYTHON='$(PYTHON)' requirements/create_venv.sh $(VENV) $(ROS)
	@touch $@

$(PACKAGE_STAMP): $(PINS_STAMP) setup.py setup.cfg package.xml
	@echo 'Installing mher_ros into $(VENV), editable'
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check \
		--no-deps --no-build-isolation --editable .
	@test -x $(VENV)/bin/mher
	@touch $@

.PHONY: test
test: $(PACKAGE_STAMP) ## run the tests
	@requirements/system_packages.sh $(VENV)/bin/python
	$(PYTEST) -rsfE $(AT_ONCE) $(PYTEST_ARGS) || { $(AGAIN) $(PYTEST_ARGS); }

.PHONY: nightly
nightly: $(PACKAGE_STAMP) ## run the property tests of the command path with 10,000 random examples each
	$(VENV)/bin/python -m pytest -q test -m nightly --hypothesis-profile nightly $(PYTEST_ARGS)

.PHONY: campaign
campaign: $(PACKAGE_STAMP) ## check policy_node over DDS from another process (SEQUENCES=1000, OUTPUTS, SEED; 45 minutes)
	$(VENV)/bin/python test/campaign/campaign.py --sequences $(SEQUENCES) --outputs $(OUTPUTS) --seed $(SEED) $(CAMPAIGN_ARGS)

.PHONY: explore
explore: $(PACKAGE_STAMP) ## check train_node from another process while it explores with two robots (STEPS=10000; 40 minutes)
	for robot in fetch ur5e; do for how in lockstep realtime 'realtime --holds'; do \
		$(VENV)/bin/python test/campaign/explore.py --robot $$robot --stepping $$how --steps $(STEPS) || exit 1; \
	done; done

.PHONY: demo
demo: $(PACKAGE_STAMP) ## train, export and deploy a policy (VIEW=1: also show it in a browser)
	$(VENV)/bin/mher demo $(if $(filter-out 0,$(VIEW)),--view) $(DEMO_ARGS)

.PHONY: bench
bench: $(PACKAGE_STAMP) ## run all benchmarks (five and a half hours) and write docs/benchmarks.md
	$(VENV)/bin/mher bench all --page docs/benchmarks.md --out docs/benchmarks $(BENCH_ARGS)

.PHONY: lint
lint: $(PACKAGE_STAMP) ## check style, types and the direction of imports
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/mypy

.PHONY: format
format: $(PACKAGE_STAMP) ## format the code with ruff
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# An environment of its own: nothing else needs these tools.
$(DOCS_VENV)/.pins: requirements/docs.txt
	@echo 'Creating $(DOCS_VENV) (once)'
	@rm -rf $(DOCS_VENV)
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

.PHONY: docs
docs: $(DOCS_VENV)/.pins ## build the documentation into build/docs
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet

COMPILE := $(UV) pip compile --quiet --config-file requirements/uv.toml --custom-compile-command 'make pins' \
	--universal --python-version 3.10 --no-annotate --no-emit-index-url --no-emit-find-links \
	--generate-hashes --no-emit-package torch

.PHONY: pins
pins: ## resolve requirements/*.in again (needs uv; UPGRADE=--upgrade for new versions)
	$(COMPILE) $(UPGRADE) -o requirements/base.txt requirements/base.in
	$(COMPILE) $(UPGRADE) -o requirements/ros.txt requirements/ros.in -c requirements/base.txt
	@# numpy is base.txt's alone: beside a sourced ROS it is that of the system.
	$(COMPILE) $(UPGRADE) -o requirements/dev.txt requirements/dev.in --no-emit-package numpy \
		-c requirements/torch.txt -c requirements/base.txt -c requirements/ros.txt
	$(COMPILE) $(UPGRADE) -o requirements/docs.txt requirements/docs.in

.PHONY: clean
clean: ## remove environments, builds and caches; keep the results of runs
	rm -rf $(VENV) $(DOCS_VENV) build install log *.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find mher_ros test -name __pycache__ -prune -exec rm -rf {} +

