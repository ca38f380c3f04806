#!/usr/bin/env bash
# Runs update-codegen.sh on a copy of the tree and fails if that changes a file. The
# tree itself is left alone.
set -euo pipefail
# shellcheck source=hack/codegen.sh
source "$(dirname "${BASH_SOURCE[0]}")/codegen.sh"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -a "$ROOT"/{go.mod,go.sum,hack,pkg} "$copy/"
bash "$copy/hack/update-codegen.sh"
out_of_date=
for tree in pkg/apis pkg/generated; do
  diff -Naupr "$ROOT/$tree" "$copy/$tree" || out_of_date=yes
done
if [[ -n $out_of_date ]]; then
  echo "generated code is out of date: run hack/update-codegen.sh and commit the result" >&2
  exit 1
fi
