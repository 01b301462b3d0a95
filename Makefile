# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO     ?= go
CC     ?= gcc
Q      := $(if $(V),,@)
BIN    := build/bin
PREFIX ?= /usr/local
GOFLAGS_BUILD := -trimpath -ldflags='-s -w'

# NVML's own header marks calls as old; that is no news to whoever builds this.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

GO_FIRST := $(shell sed -n 's/^go //p' go.mod)
# The linter is pinned here; Go fetches and checks it like any module.
TOOLS := tests/tools/go.mod

.PHONY: help
help: ## Show this text
	@echo 'gpushare: share one NVIDIA GPU between containers. Targets:'
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo 'V=1 shows each command.'

# ---- what must be there -------------------------------------------------------

.PHONY: need-go need-cc need-python
need-go:
	@have=$$({ $(GO) version 2>/dev/null || :; } | sed -n 's/^go version go\([0-9.]*\).*/\1/p'); \
	if [ "$$(printf '%s\n' $(GO_FIRST) "$${have:-0}" | sort -V | head -n 1)" != $(GO_FIRST) ]; then \
		echo "gpushare needs Go $(GO_FIRST) or newer to build; $$([ -n "$$have" ] && echo "this is Go $$have" || echo "there is no \"$(GO)\" here")." >&2; \
		echo "Get it from https://go.dev/dl/ (Debian 12's own is 1.19): unpack it as /usr/local/go," >&2; \
		echo "then: export PATH=/usr/local/go/bin:\$$PATH" >&2; \
		exit 1; \
	fi

need-cc:
	@command -v $(CC) >/dev/null || { \
		echo "gpushare needs a C compiler for its daemon, the simulator and the tests: apt-get install gcc libc6-dev" >&2; exit 1; }

need-python:
	@tests/setup/host.sh python

# ---- build --------------------------------------------------------------------

.PHONY: say-build
say-build:
	@[ -e $(BIN)/simgpu ] || echo 'Building into build/; the first time takes about two minutes, without a word.'

.PHONY: build
build: say-build go-binaries intercept probe simgpu clients ## Build everything into build/

.PHONY: go-binaries
go-binaries: need-go need-cc
	$(Q)mkdir -p $(BIN)
	$(Q)CGO_ENABLED=0 $(GO) build $(GOFLAGS_BUILD) -o $(BIN)/gpushare-runtime ./hook/cmd/gpushare-runtime
	$(Q)CGO_ENABLED=0 $(GO) build $(GOFLAGS_BUILD) -o $(BIN)/gpushare-hook ./hook/cmd/gpushare-hook
	$(Q)CGO_ENABLED=0 $(GO) build -tags no_grpc $(GOFLAGS_BUILD) -o $(BIN)/containerd-shim-gpushare-v1 ./shim/cmd/containerd-shim-gpushare-v1
	$(Q)CGO_ENABLED=0 $(GO) build $(GOFLAGS_BUILD) -o $(BIN)/gpushare ./daemon/cmd/gpushare
	$(Q)CGO_ENABLED=1 $(GO) build $(GOFLAGS_BUILD) -o $(BIN)/gpushared ./daemon/cmd/gpushared

.PHONY: intercept
intercept: need-go need-cc need-python
	$(Q)$(MAKE) $(if $(V),,-s) -C cuda-intercept

.PHONY: probe
probe: need-python
	$(Q)$(MAKE) $(if $(V),,-s) -C packaging/engine/probe

.PHONY: simgpu
simgpu: need-go need-cc
	$(Q)$(MAKE) $(if $(V),,-s) -C simgpu

.PHONY: clients
clients: need-cc need-go
	$(Q)$(MAKE) $(if $(V),,-s) -C tests/clients/c
	$(Q)$(GO) build -o build/tests/go/slice ./tests/gpu/slice

.PHONY: generate
generate: need-go ## Write generated code anew
	$(Q)$(GO) generate ./...
	$(Q)$(MAKE) -C simgpu generate

.PHONY: check-generate
check-generate: ## Fail if committed generated code is not what `make generate` writes
	$(Q)sums=$$(mktemp); trap 'rm -f "$$sums"' EXIT; \
	git grep -l 'Code generated .*DO NOT EDIT' -- cuda-intercept simgpu/lib docs/reference | xargs sha256sum >"$$sums"; \
	$(MAKE) generate; \
	sha256sum --quiet --check "$$sums" || { echo 'these files were out of date and have been written anew: commit them' >&2; exit 1; }

# ---- try it -------------------------------------------------------------------

.PHONY: demo demo-down
demo: host-setup build ## Show it: three tenants on a SIMULATED GPU (KEEP=1 leaves the node up)
	$(Q)$(GO) build -o build/tests/go/demo ./tests/demo
	$(Q)build/tests/go/demo $(if $(KEEP),--keep)

demo-down: need-go ## End the node that `make demo KEEP=1` left
	$(Q)$(GO) build -o build/tests/go/demo ./tests/demo
	$(Q)build/tests/go/demo --down

.PHONY: host-setup
host-setup:
	@tests/setup/host.sh engine images python

.PHONY: engines engines-all
engines: need-go ## Build the container engines that the tests need beside the machine's
	@GO=$(GO) tests/setup/engines.sh containerd-2.4 crictl
	@GO=$(GO) tests/setup/examples.sh compose

engines-all: engines
	@GO=$(GO) tests/setup/engines.sh containerd-1.7 containerd-2.2 containerd-2.3
	@GO=$(GO) tests/setup/examples.sh kubernetes
	@tests/setup/engines-docker.sh
	@tests/setup/host.sh podman

# ---- tests --------------------------------------------------------------------

.PHONY: check
check: build ## Vet, lint basics, unit, golden and C tests, short fuzz (5 minutes)
	$(Q)$(GO) run ./tests/suite check

.PHONY: test
test: host-setup engines build ## Everything, containers included (40 minutes, root)
	$(Q)$(GO) run ./tests/suite test

.PHONY: test-e2e
test-e2e: host-setup engines build ## Only the tests with containers
	$(Q)$(GO) run ./tests/suite e2e

.PHONY: test-clients
test-clients: host-setup build ## Only the Python clients, all of them, with a table in docs/measurements
	$(Q)$(GO) run ./tests/suite clients

.PHONY: test-real-driver
test-real-driver: build ## The interceptor over NVIDIA's own libraries, without a GPU
	$(Q)$(GO) run ./tests/suite real-driver

.PHONY: test-engines
test-engines: host-setup engines-all build ## The memory limit under each container engine, with a table in docs/measurements; Docker; Kubernetes; images (30 minutes)
	$(Q)$(GO) run ./tests/suite engines

.PHONY: mutation
mutation: build ## Take N wrappers out (10, or all; SEED=, MATCH=, RECORD=file): their tests must fail
	$(Q)$(GO) run ./tests/mutation -n $(or $(N),10) $(if $(SEED),-seed $(SEED)) $(if $(MATCH),-match '$(MATCH)') $(if $(RECORD),-record $(RECORD))

.PHONY: soak
soak: host-setup build ## Start and end containers for FOR=10m, then look for leaks
	$(Q)$(GO) run ./tests/soak -for $(or $(FOR),10m)

.PHONY: soak-memory
soak-memory: build ## The full counts of races, kills and short lives at the memory limit (SIMULATED, root, 20 minutes)
	$(Q)GPUSHARE_TEST_SOAK=1 $(GO) test -count=1 -v -timeout 90m ./tests/intercept \
		-run 'AtTheEdge|TestKill|TestDeaths|TestStartUpStorm|TestManyForks|TestMoreProcesses|TestShortLives'

.PHONY: bench
bench: host-setup build ## Cost of being between a program and its (SIMULATED) GPU
	$(Q)$(GO) run ./tests/bench

.PHONY: lint
lint: need-go ## golangci-lint, with the dependency rules
	$(Q)$(GO) run ./tests/suite lint

# ---- install ------------------------------------------------------------------

# Only what is installed is built: no simulator, no test clients, one architecture.
.PHONY: install
install: say-build go-binaries probe ## Copy binaries and libraries below PREFIX (/usr/local); then run: gpushare install
	$(Q)$(MAKE) $(if $(V),,-s) -C cuda-intercept $$(uname -m)
	$(Q)packaging/install/install.sh "$(PREFIX)" "$(DESTDIR)"

.PHONY: clean
clean: ## Remove build/ (downloads stay in .cache/)
	$(Q)rm -rf build
