#!/usr/bin/env bash
# Raises what the programs of the local Kubernetes share with this project to the versions of go.mod. A package of one
# version is compiled once, and so is what imports it. etcd, and Kubernetes of older minor versions, stay as they were
# released. It needs the network.
set -euo pipefail
cd "$(dirname "$0")/.."
newest=$(printf '%s\n' hack/local/build/kubernetes-* | sort -V | tail -n 1)
ours=$(mktemp)
trap 'rm -f "$ours"' EXIT
go list -m -f '{{if not .Main}}{{.Path}} {{.Version}}{{end}}' all | sort >"$ours"
for module in "$newest" hack/local/build/{containerd,coredns,fake-gcs-server,local-path,network-policies,registry,versitygw} test/{argocd,flux,prometheus,prometheus/podmonitors}; do
  (
    cd "$module"
    # go mod tidy takes back what the module does not need, and raises what it needs newer.
    # shellcheck disable=SC2046
    go mod edit $(go list -m -f '{{if not .Main}}{{.Path}}{{end}}' all | sort | join - "$ours" | sed 's/^/-require=/; s/ /@/')
    go mod tidy
  )
done
