#!/usr/bin/env bash
# Fails if a Go file does not begin with the licence header. Only a generator may put
# build constraints before it.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

cd "$ROOT"
lines=$(wc -l <hack/boilerplate.go.txt)
failed=0
while read -r file; do
  header=$(head -n 20 "$file")
  if [[ $file == */zz_generated.* ]]; then header=$(sed '/^\/\/\(go:build\| +build\)/d; /./,$!d' <<<"$header"); fi
  if ! head -n "$lines" <<<"$header" | cmp -s - hack/boilerplate.go.txt; then
    echo "$file does not begin with hack/boilerplate.go.txt" >&2
    failed=1
  fi
done < <(files '*.go')
exit $failed
