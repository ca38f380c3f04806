#!/usr/bin/env bash
# Writes generated.proto and generated.pb.go beside the API types and the field
# numbers into the types' tags. Numbers are never reused: review every change of
# generated.proto. Needs protoc 3.21 (Debian: protobuf-compiler, libprotobuf-dev).
set -euo pipefail
# shellcheck source=hack/codegen.sh
source "$(dirname "${BASH_SOURCE[0]}")/codegen.sh"

command -v protoc >/dev/null || {
  echo "protoc is missing: apt-get install protobuf-compiler libprotobuf-dev" >&2
  exit 1
}
build_tool k8s.io/code-generator/cmd/go-to-protobuf \
  k8s.io/code-generator/cmd/go-to-protobuf/protoc-gen-gogo golang.org/x/tools/cmd/goimports

# protoc resolves imports by path, so the generator wants one tree in which every
# package stands at its import path. Links keep the module cache out of reach of
# its clean-up; the "-" below keeps it from generating imported packages again.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/$(dirname "$MODULE")" "$tree/github.com/gogo" "$tree/k8s.io"
ln -s "$ROOT" "$tree/$MODULE"
ln -s "$(cd "$ROOT/hack/tools" && go list -m -f '{{.Dir}}' github.com/gogo/protobuf)" "$tree/github.com/gogo/protobuf"
for m in k8s.io/apimachinery k8s.io/api; do
  ln -s "$(module_dir $m)" "$tree/$m"
done

foreign=
for p in api/resource util/intstr runtime/schema runtime apis/meta/v1; do
  foreign+=-k8s.io/apimachinery/pkg/$p,
done
cd "$ROOT"
PATH=$TOOLS:$PATH go-to-protobuf --go-header-file "$HEADER" \
  --apimachinery-packages="${foreign}-k8s.io/api/core/v1" \
  --packages="$TYPES" --output-dir="$tree" --proto-import="$tree" --drop-gogo-go=false
