#!/usr/bin/env bash
# Measures the API side by side with a CustomResourceDefinition of the same type, prints tables
# and writes them to dist/. PROFILE=short (default) skips lines after five minutes, but never of the
# first round: about nine minutes on two busy cores. The limits of PROFILE=full end after 70 minutes.
# PROFILE=scale measures the API server alone with 150,000 objects, in at most 20 minutes.
# Arguments go to the program, such as: hack/bench-api.sh -only list
# docs/explanation/bench-api.md explains the figures.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
export ETCD_OPERATOR_CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
LOCAL=$ETCD_OPERATOR_CACHE/tools/local
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
make --no-print-directory local-build
ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir)
export ETCD_OPERATOR_BIN
mkdir -p bin
# The version is stamped as in a release: the API server derives its features from it.
go build -buildvcs=false -o bin/apiserver -ldflags '-X k8s.io/component-base/version.gitVersion=v0.1.0' ./cmd/apiserver
go build -buildvcs=false -o bin/benchapi ./test/benchapi
exec bin/benchapi -profile "${PROFILE:-short}" "$@"
