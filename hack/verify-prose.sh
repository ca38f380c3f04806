#!/usr/bin/env bash
# Checks words, sentences and names of the whole work tree, or of the files and folders
# that are named: `hack/verify-prose.sh pkg/etcd docs/backup.md`. It takes seconds for a folder.
# `hack/verify-prose.sh -summary` counts findings per folder and per rule. The rules for sentences are in
# hack/prose/styles, the words that names must not contain in hack/prose/words.txt. A word
# with another legitimate meaning gets a precise pattern there; no file is exempt.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

options=()
while [[ ${1:-} == -* ]]; do
  options+=("$1")
  shift
done
cd "$ROOT"
vale=$(vale)
go build -buildvcs=false -o "$TOOLS/prose" ./hack/prose
files "${@:-.}" | grep -v -e '^LICENSE$' -e '/testdata/' |
  xargs -d '\n' "$TOOLS/prose" -vale "$vale" -config hack/prose/vale.ini "${options[@]}"
