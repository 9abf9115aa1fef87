# tgspool: `make help` lists what there is. Longer steps live in scripts/.
export CGO_ENABLED ?= 0
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 10s
BENCHTIME ?= 1s
BENCHDIR ?= /var/tmp

.DEFAULT_GOAL := help
.PHONY: help build run demo test race lint fuzz bench check deb debcheck e2e e2e-systemd e2e-clients e2e-arm64

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

build: ## one static binary, bin/tgspool
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/tgspool ./cmd/tgspool

run: build ## the daemon: with TELEGRAM_BOT_TOKEN the real thing, else simulator and echo
	@scripts/run.sh

demo: build ## the whole job against the simulator, through kills and outages, with proof
	bin/tgspool demo

test: ## vet and every test that needs only Go
	go vet ./...
	go test -shuffle=on ./...

race: ## the tests again under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -shuffle=on ./...

lint: bin/golangci-lint ## golangci-lint, at the version of tools/go.mod
	GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache bin/golangci-lint run --allow-parallel-runners ./...

bin/golangci-lint: tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

fuzz: ## every fuzz target in turn, FUZZTIME each
	@scripts/fuzz.sh $(FUZZTIME)

bench: ## the figures beside floor and peers; CASE=path,rates,… BENCHTIME=1s BENCHDIR=/var/tmp
	cd scripts/bench && go run . -case '$(CASE)' -time $(BENCHTIME) -dir $(BENCHDIR)

check: test lint ## what should pass before a commit

deb: ## Debian packages for arm64, amd64 and armhf, with checksums, in dist/
	@scripts/deb.sh

debcheck: ## the packages twice: same bytes, small enough, lintian content
	@scripts/debcheck.sh

e2e: build ## as root: kill -9 rounds, the demo, power cuts, and what e2e-systemd does
	@scripts/e2e.sh

e2e-systemd: ## as root: the package on bookworm and trixie, booted for it
	@scripts/e2e-systemd.sh

e2e-clients: build ## bots on unmodified libraries from npm and Go, with tgspool and the bots killed
	@scripts/e2e-clients.sh

e2e-arm64: ## as root: the arm binaries, and the package on an emulated arm64 machine
	@scripts/e2e-arm64.sh
