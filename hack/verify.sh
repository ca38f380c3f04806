#!/usr/bin/env bash
# Runs every verify-*.sh beside it, or those that are named (`hack/verify.sh lint shell`), and
# tells how long each took and which failed. It goes on after a failure, so that one
# run tells everything.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
if [[ $# -gt 0 ]]; then checks=("${@/#/verify-}") && checks=("${checks[@]/%/.sh}"); else checks=(verify-*.sh); fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT
summary=()
failures=0
for check in "${checks[@]}"; do
  name=${check#verify-}
  name=${name%.sh}
  begin=$SECONDS
  if bash "./$check" >"$output" 2>&1; then result=ok; else
    result=FAILED
    failures=$((failures + 1))
    printf '== %s\n' "$name"
    cat "$output"
  fi
  summary+=("$(printf '%-12s %-6s %4d s' "$name" "$result" $((SECONDS - begin)))")
done

printf '%s\n' "${summary[@]}"
if [[ $failures -gt 0 ]]; then
  echo "$failures of ${#checks[@]} checks failed"
  exit 1
fi
