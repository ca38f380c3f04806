#!/usr/bin/env bash
# Builds Prometheus and what the end-to-end tests use beside it into the cache of tools:
# podmonitors, which makes its configuration, and dashboards, which evaluates the dashboards.
# What is up to date stays as it is. The server finds targets in Kubernetes only, which halves
# what is compiled, and has no pages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../test/prometheus"
tools=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}/tools
export CGO_ENABLED=0 GOFLAGS=-trimpath
mkdir -p "$tools"
go build -buildvcs=false -ldflags '-s -w' -tags remove_all_sd,enable_kubernetes_sd -o "$tools/prometheus" github.com/prometheus/prometheus/cmd/prometheus
go build -buildvcs=false -ldflags '-s -w' -o "$tools/dashboards" .
(cd podmonitors && go build -buildvcs=false -ldflags '-s -w' -o "$tools/podmonitors" .)
