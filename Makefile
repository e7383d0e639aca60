# jobq. `make` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export GOTOOLCHAIN := local

BIN := bin/jobq
GOFILES := $(shell git ls-files '*.go' 2>/dev/null)
FUZZTIME ?= 60s

.PHONY: help build install demo test setup check unit race sizes e2e bench fuzz gen simulate mutants clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the program into bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN) ./cmd/jobq

install: ## put jobq on the PATH (go env GOBIN, else GOPATH/bin)
	CGO_ENABLED=0 go install -trimpath ./cmd/jobq
	@dir=$$(go env GOBIN); echo "installed jobq into $${dir:-$$(go env GOPATH)/bin}"

demo: build ## build, then run a diamond whose tasks pass data to each other
	@JOBQ_HOME=$$(mktemp -d) && export JOBQ_HOME && trap 'rm -rf "$$JOBQ_HOME"' EXIT && $(BIN) run examples/diamond.yaml

test: setup check race sizes e2e ## pass every test: install what they need, then run them

setup: ## install what the tests need and is not there
	@scripts/setup

check: ## formatting, vet, the rules of the layout
	@unformatted=$$(gofmt -l $(GOFILES)); if [ -n "$$unformatted" ]; then echo "gofmt wants: $$unformatted"; exit 1; fi
	go vet ./...
	go test ./internal/archtest

unit: ## every test but the end-to-end ones, without the race detector
	@scripts/timed "unit tests" go test -shuffle=on -timeout 20m $$(go list ./... | grep -v internal/e2e)

race: ## every test but the end-to-end ones, with the race detector
	@scripts/timed "unit tests with the race detector" env CGO_ENABLED=1 go test -race -shuffle=on -timeout 30m $$(go list ./... | grep -v internal/e2e)

sizes: ## the packages whose tests of time, memory and large input the race detector has to leave out
	@scripts/timed "tests of time, memory and large input" go test -shuffle=on -timeout 20m $$(git grep -l '^//go:build !race' | xargs -n1 dirname | sort -u | sed 's#^#./#')

e2e: build ## the built program: real commands, kill -9, resume
	@scripts/timed "end-to-end tests" env JOBQ_BIN=$(CURDIR)/$(BIN) go test -shuffle=on -timeout 30m ./internal/e2e/...

bench: ## every benchmark, once each; docs/performance.md says how figures were taken
	go test -run '^$$' -bench . -benchtime 1s ./...

fuzz: ## every fuzz target for FUZZTIME (60s) each
	@scripts/fuzz $(FUZZTIME)

gen: ## rewrite generated files: states, schema, settings, usage texts
	go test ./core/state -run StatesPage -update
	go test ./core/spec -run Schema -update
	go test ./internal/config -update
	go test ./internal/cli -run 'Usage|Scripts' -update

simulate: ## 10,000 random histories on each kind of queue, public workflows, every crash of the small cases
	@scripts/timed "random histories" go run ./internal/sim/cmd/simulate -complete -last 10000
	@for graph in wf-montage103 wf-epigenomics41 gha-uv-ci22-code-pr argo-depends; do \
		file=../shared/cases/dags/$$graph.yaml; \
		if [ -e $$file ]; then scripts/timed "1,000 histories of $$graph" go run ./internal/sim/cmd/simulate -file $$file -last 500 || exit 1; \
		else echo "$$graph is left out: $$file is not there"; fi; \
	done
	@scripts/timed "every crash, every race" go run ./internal/sim/cmd/exhaustive

mutants: ## put each known defect in and see the simulation catch it; rewrites the table
	@scripts/timed "mutants" go run ./internal/sim/cmd/mutants -doc docs/correctness.md

clean: ## remove what was built
	rm -rf bin dist
