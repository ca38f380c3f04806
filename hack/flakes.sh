#!/usr/bin/env bash
# Looks for tests that fail now and then: runs the tests of each package several times in
# one process, with the race detector and in random order. It goes on after a failure, and
# prints at the end which tests failed and how often.
#
#   hack/flakes.sh [-n COUNT] [PACKAGE | FLAG]...
#
# Without a package it takes all of those that `make unit` runs. Flags are those of
# `go test`, such as -short or -run=NAME. `nice hack/flakes.sh` beside another build shows
# more than an idle machine does.
set -uo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT" || exit 1

COUNT=10
if [[ ${1:-} == -n ]]; then
  COUNT=${2:?-n needs the number of runs}
  shift 2
fi
flags=() patterns=()
for argument in "$@"; do
  if [[ $argument == -* ]]; then flags+=("$argument"); else patterns+=("$argument"); fi
done
without=(-e '^$' -e /test/bench -e /test/e2e -e /test/integration)
if [[ ${#patterns[@]} == 0 ]]; then
  patterns=(./...)
  without+=(-e /test/simulation)
fi

tested=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${patterns[@]}") || exit
mapfile -t packages < <(grep -v "${without[@]}" <<<"$tested")
if [[ ${#packages[@]} == 0 ]]; then
  echo "no tests in ${patterns[*]}" >&2
  exit 1
fi
output=$(mktemp -d)
report=()
failed=0
for package in "${packages[@]}"; do
  name=${package#*/*/*/}
  file=$output/${name//\//_}.log
  start=$SECONDS
  if go test -race -count="$COUNT" -shuffle=on -timeout=60m "${flags[@]}" "$package" >"$file" 2>&1; then
    result=ok
    rm "$file"
  else
    result="FAILED, see $file"
    failed=1
  fi
  report+=("$(printf '%-32s %5d s  %s' "$name" $((SECONDS - start)) "$result")")
  echo "${report[-1]}"
done

if [[ $failed == 0 ]]; then
  rmdir "$output"
  echo "no failure in $COUNT runs of ${#packages[@]} packages"
  exit
fi
printf '\nfailures in %d runs:\n' "$COUNT"
grep -hoE -e '^ *--- FAIL: [^ ]+' -e 'WARNING: DATA RACE' -e '^panic: .*' "$output"/*.log | sed 's/^ *//' | sort | uniq -c | sort -rn
exit 1
