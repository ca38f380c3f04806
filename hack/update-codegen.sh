#!/usr/bin/env bash
# Writes deep copies, defaults, the OpenAPI definitions and the typed clients.
set -euo pipefail
# shellcheck source=hack/codegen.sh
source "$(dirname "${BASH_SOURCE[0]}")/codegen.sh"

gen=k8s.io/code-generator/cmd
build_tool $gen/deepcopy-gen $gen/defaulter-gen $gen/client-gen $gen/lister-gen \
  $gen/informer-gen $gen/applyconfiguration-gen k8s.io/kube-openapi/cmd/openapi-gen
cd "$ROOT"
out=$ROOT/pkg/generated
outpkg=$MODULE/pkg/generated

"$TOOLS/deepcopy-gen" --go-header-file "$HEADER" --output-file zz_generated.deepcopy.go "$TYPES"
"$TOOLS/defaulter-gen" --go-header-file "$HEADER" --output-file zz_generated.defaults.go "$TYPES"

inputs=("$TYPES" k8s.io/api/core/v1 k8s.io/api/autoscaling/v1)
for p in api/resource apis/meta/v1 runtime util/intstr version; do
  inputs+=("k8s.io/apimachinery/pkg/$p")
done
readonly_args=()
for p in "${inputs[@]:1}"; do
  readonly_args+=(--readonly-pkg "$p")
done
mkdir -p "$out/openapi"
"$TOOLS/openapi-gen" --go-header-file "$HEADER" --output-dir "$out/openapi" --output-pkg "$outpkg/openapi" \
  --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
  --report-filename /dev/null "${readonly_args[@]}" "${inputs[@]}"

schema=$(mktemp)
trap 'rm -f "$schema"' EXIT
go run ./hack/modelschema >"$schema"
rm -rf "$out"/{applyconfiguration,clientset,listers,informers}
"$TOOLS/applyconfiguration-gen" --go-header-file "$HEADER" --openapi-schema "$schema" \
  --output-dir "$out/applyconfiguration" --output-pkg "$outpkg/applyconfiguration" "$TYPES"
"$TOOLS/client-gen" --go-header-file "$HEADER" --clientset-name versioned --input-base "$MODULE/pkg/apis" \
  --input etcd/v1beta2 --apply-configuration-package "$outpkg/applyconfiguration" --prefers-protobuf \
  --output-dir "$out/clientset" --output-pkg "$outpkg/clientset"
"$TOOLS/lister-gen" --go-header-file "$HEADER" --output-dir "$out/listers" --output-pkg "$outpkg/listers" "$TYPES"
"$TOOLS/informer-gen" --go-header-file "$HEADER" --versioned-clientset-package "$outpkg/clientset/versioned" \
  --listers-package "$outpkg/listers" --output-dir "$out/informers" --output-pkg "$outpkg/informers" "$TYPES"
