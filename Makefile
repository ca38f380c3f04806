# What can be done with this repository; `make help` explains each target.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= v0.1.0
IMAGE   ?= quay.io/etcd-operator/etcd-operator:$(VERSION)
NODES   ?=
IP_FAMILIES ?=
PACKAGES ?=
PLUGIN_DIR ?=
KUBERNETES  ?=
AUDIT       ?=
TOUR        ?=
CELL ?=
N    ?=
SEED ?=
ALL  ?=
CORE ?=
PROFILE ?= short
HELM ?=
PARTS ?=
RELEASE_DOWNLOAD ?=

ROOT  := $(CURDIR)
CACHE := $(if $(ETCD_OPERATOR_CACHE),$(ETCD_OPERATOR_CACHE),$(HOME)/.cache/etcd-operator)
TOOLS := $(CACHE)/tools
LOCAL := $(TOOLS)/local
DIST  := $(ROOT)/dist

VERSION_PACKAGE := k8s.io/component-base/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).gitVersion=$(VERSION) \
  -X $(VERSION_PACKAGE).gitCommit=$(shell git rev-parse HEAD 2>/dev/null || echo unknown) \
  -X $(VERSION_PACKAGE).gitTreeState=clean

export ETCD_OPERATOR_CACHE := $(CACHE)

##@ General
.PHONY: help
help: ## Show this text.
	@awk 'BEGIN {FS = ":.*##"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-zA-Z0-9_-]+:.*##/ {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it
.PHONY: demo
demo: TOUR := yes
demo: up ## The main job: a real Kubernetes, a three-member etcd, and a tour of what it can do.
	@hack/demo.sh

.PHONY: up
up: local-tool dist/etcd-operator.tar ## Bring the local Kubernetes up (NODES=3 for three nodes, IP_FAMILIES=ipv4, dual or ipv6, KUBERNETES=1.32 to 1.37) with the programs installed from artifacts/.
	@$(LOCAL) up $(if $(NODES),--nodes $(NODES)) $(if $(IP_FAMILIES),--ip-families $(IP_FAMILIES)) $(if $(KUBERNETES),--kubernetes $(KUBERNETES)) $(if $(AUDIT),--audit) $(if $(TOUR),--tour)
	@$(LOCAL) load dist/etcd-operator.tar
	@hack/install.sh

.PHONY: down
down: local-tool ## Stop the local Kubernetes; nothing is left but the cache of built programs.
	@$(LOCAL) down

.PHONY: kubeconfig
kubeconfig: local-tool ## Print the path of the local Kubernetes' kubeconfig (use make -s).
	@$(LOCAL) kubeconfig

##@ Build
.PHONY: build
build: ## Build the programs into bin/.
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: install-plugin
install-plugin: ## Build kubectl etcd and install it on the PATH (PLUGIN_DIR=DIRECTORY chooses where); see docs/how-to/kubectl-plugin.md.
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kubectl-etcd
	@PLUGIN_DIR='$(PLUGIN_DIR)' hack/install-plugin.sh bin/kubectl-etcd

.PHONY: docs
docs: ## Build the documentation as a site, dist/docs, and fail on a dead link.
	@hack/packages.sh
	@mkdocs build --strict --quiet
	@echo "open dist/docs/index.html"

.PHONY: charts
charts: ## Lint, test and pack the Helm charts into dist/.
	@cd test/charts && CGO_ENABLED=0 go test -trimpath -count=1 ./...
	@cd test/charts && CGO_ENABLED=0 go run -trimpath -buildvcs=false ./pack $(DIST) $(ROOT)/charts/etcd-operator $(ROOT)/charts/etcd-cluster

.PHONY: release
release: ## Everything of a release, dist/release/VERSION: image for amd64 and arm64, manifests, charts, plugin, SBOM, checksums (RELEASE_KEY=FILE signs, RELEASE_DOWNLOAD=URL is where users download).
	@RELEASE_DOWNLOAD='$(RELEASE_DOWNLOAD)' hack/release.sh $(VERSION)

.PHONY: image
image: dist/etcd-operator.tar ## Pack the programs as a container image, dist/etcd-operator.tar.

.PHONY: dist/etcd-operator.tar
dist/etcd-operator.tar: local-tool build
	@mkdir -p $(DIST)
	@$(LOCAL) image --ref $(IMAGE) --out $@ --entrypoint '["/controller"]' --user 65532 \
	  bin/agent=/agent bin/apiserver=/apiserver bin/controller=/controller bin/launcher=/launcher LICENSE=/LICENSE

.PHONY: generate
generate: ## Generate code again after a change of the API types.
	hack/update-protobuf.sh
	hack/update-codegen.sh

##@ Check
.PHONY: test
test: ## Everything that must hold: verify, unit, conformance, simulation, integration, e2e on the newest and the oldest Kubernetes.
	@hack/test.sh +verify +unit +simulation +states +integration e2e e2e-oldest

.PHONY: quick
quick: ## What changed since main, in a minute: compile, lint, tests of the changed packages, prose (BASE=COMMIT for another start).
	@BASE='$(BASE)' hack/quick.sh

.PHONY: core
core: ## Twenty end-to-end flows and two cells of the fault matrix on the local Kubernetes, in eight minutes.
	@hack/test.sh core

.PHONY: unit
unit: ## The quick part: unit and registry conformance tests with the race detector.
	@hack/test.sh unit states

.PHONY: verify
verify: ## Formatting, lint, generated code, licence headers, scripts.
	@hack/test.sh verify

.PHONY: flakes
flakes: ## Unit tests ten times in random order, to find those that fail now and then (PACKAGES=./pkg/etcd for some); see docs/testing.md.
	@hack/object-stores.sh
	@hack/flakes.sh $(PACKAGES)

.PHONY: simulation
simulation: ## The controller against a simulated Kubernetes and etcd under random faults.
	@hack/test.sh simulation

.PHONY: integration
integration: ## The API server behind a real kube-apiserver.
	@hack/test.sh integration

.PHONY: e2e
e2e: ## Everything on the local Kubernetes.
	@hack/test.sh e2e

.PHONY: e2e-oldest
e2e-oldest: ## One test of each kind, and the demo, on the oldest supported Kubernetes.
	@hack/test.sh e2e-oldest

.PHONY: nightly
nightly: ## What takes hours: every enumeration, 100,000 schedules, 20 rounds of each operation under a kube-apiserver, 8 GiB, all faults.
	@hack/test.sh nightly

.PHONY: faults
faults: ## Cells of the fault matrix on the local Kubernetes: CELL=FAULT/OPERATION, N=10 (with SEED), ALL=1 or CORE=1; see docs/testing.md.
	@CELL='$(CELL)' N='$(N)' SEED='$(SEED)' ALL='$(ALL)' CORE='$(CORE)' hack/faults.sh

.PHONY: charts-on-cluster
charts-on-cluster: local-tool ## Both charts with Helm 3 and Helm 4 on the local Kubernetes that is up, best on three nodes (HELM=4 PARTS=ha for some; see docs/testing.md).
	@HELM='$(HELM)' hack/charts-on-cluster.sh $(PARTS)

.PHONY: bench
bench: ## Measure times and footprints on the local Kubernetes; see docs/explanation/performance.md.
	@hack/bench.sh

.PHONY: bench-api
bench-api: ## Measure the API side by side with a CRD (PROFILE=short or full), or with many objects (PROFILE=scale, ARGS=flags); see docs/explanation/bench-api.md.
	@PROFILE='$(PROFILE)' hack/bench-api.sh $(ARGS)

##@ Local Kubernetes
.PHONY: local-tool
local-tool:
	@mkdir -p $(TOOLS)
	@cd hack/local && CGO_ENABLED=0 go build -buildvcs=false -o $(LOCAL) .

.PHONY: local-build
local-build: local-tool ## Build the Kubernetes and etcd programs and images that the local Kubernetes runs.
	@$(LOCAL) build $(if $(KUBERNETES),--kubernetes $(KUBERNETES))
