#!/usr/bin/env bash
# Sourced by the verification scripts: builds the pinned tools once into a cache
# outside the work tree. Each tool that must not drag the versions of others along
# has a module of its own below hack/tools.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TOOLS=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}/tools

# install_tool MODULE_DIR IMPORT_PATH prints the path of the program.
install_tool() {
  mkdir -p "$TOOLS"
  (cd "$ROOT/hack/tools/$1" && GOFLAGS='' GOBIN=$TOOLS go install -buildvcs=false "$2") >&2
  echo "$TOOLS/$(basename "$2")"
}

golangci_lint() { install_tool lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint; }
logcheck() { install_tool logcheck sigs.k8s.io/logtools/logcheck; }
# Vale needs cgo for parsers of source code that hack/prose does not use. Without
# optimization they compile in a fraction of the time.
vale() { CGO_ENABLED=1 CGO_CFLAGS=-O0 install_tool vale github.com/errata-ai/vale/v3/cmd/vale; }

# helm 3 and helm 4 print the paths of the two releases of Helm, which are built from one module.
helm() {
  mkdir -p "$TOOLS"
  (cd "$ROOT/hack/tools/helm" && CGO_ENABLED=0 GOFLAGS=-trimpath go build -buildvcs=false -o "$TOOLS/helm$1" "helm.sh/helm/v$1/cmd/helm") >&2
  echo "$TOOLS/helm$1"
}

actionlint() { install_tool actionlint github.com/rhysd/actionlint/cmd/actionlint; }

# krew prints the path of the manager of kubectl plugins, validate_krew_manifest that of the
# program that checks manifests for it.
krew() { install_tool krew sigs.k8s.io/krew/cmd/krew; }
validate_krew_manifest() { install_tool krew sigs.k8s.io/krew/cmd/validate-krew-manifest; }

# Each bill of materials names the digest of this program, so the program must not hold a directory.
cyclonedx_gomod() {
  mkdir -p "$TOOLS"
  (cd "$ROOT/hack/tools/sbom" && CGO_ENABLED=0 GOFLAGS=-trimpath go build -buildvcs=false -o "$TOOLS/cyclonedx-gomod" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod) >&2
  echo "$TOOLS/cyclonedx-gomod"
}

# go_modules lists the directories of the modules that hold code of this project.
go_modules() {
  printf '%s\n' "$ROOT" "$ROOT/hack/local" "$ROOT/hack/olm" "$ROOT/hack/release" "$ROOT/test/charts" "$ROOT/test/prometheus" "$ROOT/test/prometheus/podmonitors"
}

# files PATTERN... lists the files of the work tree that are, or could be, committed.
files() {
  git -C "$ROOT" ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
    if [[ -f $ROOT/$file ]]; then echo "$file"; fi
  done
}
