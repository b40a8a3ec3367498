# Each target sets up by itself what it needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BUILD := build
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/$(BUILD)/bin:$(PATH)
export UV_PYTHON_DOWNLOADS := never
export UV_SYSTEM_CERTS := 1
# Compiled modules are kept, whatever the caller's shell says: else each of a thousand processes compiles them anew.
export PYTHONDONTWRITEBYTECODE :=
PYTHON ?= python3
UV_VERSION := 0.13.8

# The Debian packages that the system suites need: real hosts, real web servers, real namespaces.
SYSTEM_PACKAGES := clang debootstrap faketime iproute2 libbpf-dev llvm maven nginx-light openjdk-17-jre-headless \
    openssh-client openssh-server openssl podman procps runc systemd util-linux

PYTHON_FILES := dsl compiler collectors lab plugins schemas tests conftest.py

.PHONY: help setup opa system real demo test lint bench lab clean proto

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# --- set-up ---------------------------------------------------------------------------------------------

UV := $(BUILD)/bin/uv
$(UV):
	@tests/get-uv.sh $@ $(UV_VERSION) $(PYTHON)

.venv/.locked: uv.lock pyproject.toml collectors/pyproject.toml | $(UV)
	@echo "setting up the Python environment from uv.lock"
	@$(UV) sync --frozen --quiet --python $(PYTHON)
	@touch $@

$(BUILD)/bin/opa: policies/get-opa.sh
	@mkdir -p $(BUILD)/bin
	@policies/get-opa.sh $@

setup: .venv/.locked $(BUILD)/bin/opa

BPF_OBJECTS := $(addprefix collectors/tidegate_edge/,sockets/sockets.bpf.o steer/bpf/steer.bpf.o steer/bpf/steered.bpf.o)
$(BPF_OBJECTS): $(wildcard collectors/bpf/*) schemas/rows.py schemas/sockets_pb2.py \
    collectors/tidegate_edge/sockets/iterator.py | .venv/.locked
	@collectors/bpf/build.sh $@

$(BUILD)/kafka: lab/kafka/pom.xml lab/kafka/get-kafka.sh
	@lab/kafka/get-kafka.sh $@
	@touch $@

# What only the suites on real systems need; where the compiler or Maven is missing, their tests say so.
real: setup system
	@if command -v clang >/dev/null; then $(MAKE) --no-print-directory $(BPF_OBJECTS); else echo "no clang: no BPF reader, no steering by BPF"; fi
	@if command -v mvn >/dev/null; then $(MAKE) --no-print-directory $(BUILD)/kafka; else echo "no Maven: no Kafka broker"; fi

system:
	@tests/system-packages.sh $(SYSTEM_PACKAGES)

# --- what people run ------------------------------------------------------------------------------------

demo: setup  ## a simulated fleet of four POPs, from telemetry to variables
	@compiler/demo.sh $(BUILD)/demo

test: real  ## every suite; as root also those on real sockets and systemd hosts
	@pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not root or hosts"
	@pytest -m "root and not hosts"

lint: setup  ## ruff, mypy, ansible-lint, yamllint, opa, shellcheck
	ruff check $(PYTHON_FILES)
	ruff format --check $(PYTHON_FILES)
	mypy
	opa check --strict policies
	opa fmt --list --fail policies
	git ls-files '*.sh' .ci/run | xargs shellcheck
	yamllint --strict .
	playbooks/link-collection.sh
	ansible-lint --offline

bench: real  ## ratios against floors and peers, to build/bench.json
	@python tests/bench.py $(BUILD)/bench.json

lab: setup system  ## the laboratory's experiments (root)
	@PYTHONPATH=lab python -m tidegate_lab loss
	@PYTHONPATH=lab python -m tidegate_lab riptide

proto: setup  ## regenerate schemas/*_pb2.py from the .proto files
	@python -m grpc_tools.protoc -Ischemas --python_out=schemas --pyi_out=schemas schemas/*.proto

clean:  ## remove what the targets above made
	rm -rf $(BPF_OBJECTS) $(BUILD) .venv .tidegate .ansible .mypy_cache .pytest_cache .ruff_cache .hypothesis
