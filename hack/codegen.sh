#!/usr/bin/env bash
# Sourced by the generation scripts: builds the pinned generators once into a
# cache outside the work tree and names what they work on.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
MODULE=$(sed -n 's/^module //p' "$ROOT/go.mod")
export HEADER=$ROOT/hack/boilerplate.go.txt
export TYPES=$MODULE/pkg/apis/etcd/v1beta2
TOOLS=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}/tools

# build_tool IMPORT_PATH...: the go command's own cache makes a repeat cheap.
build_tool() {
  mkdir -p "$TOOLS"
  (cd "$ROOT/hack/tools" && GOFLAGS='' GOBIN=$TOOLS go install -buildvcs=false "$@")
}

module_dir() {
  (cd "$ROOT" && go list -m -f '{{.Dir}}' "$1")
}
