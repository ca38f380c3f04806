#!/usr/bin/env bash
# Looks for tests that fail now and then: runs the tests of each package several times in
# one process, with the race detector and in random order. It goes on after a failure, and
# prints at the end which tests failed and how often.
#
#   hack/flakes.sh [-n COUNT] [-j PACKAGES AT ONCE] [PACKAGE | FLAG]...
#
# Without a package it takes all of those that `make unit` runs. Flags are those of
# `go test`, such as -short or -run=NAME. Most tests wait more than they compute, so that
# several packages run at once, as many as twice the processors if -j does not say
# otherwise. They are load for each other: a busy machine shows more than an idle one.
set -uo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT" || exit 1

COUNT=10
JOBS=$((2 * $(nproc)))
while [[ ${1:-} == -n || ${1:-} == -j ]]; do
  if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then
    echo "$1 needs a number, got ${2:-nothing}" >&2
    exit 1
  fi
  if [[ $1 == -n ]]; then COUNT=$2; else JOBS=$2; fi
  shift 2
done
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

# one PACKAGE tests one package. A log that stays is one of a failure.
one() {
  local package=$1 start=$SECONDS result name file
  name=${package#*/*/*/}
  file=$output/${name//\//_}.log
  if go test -race -count="$COUNT" -shuffle=on -timeout="$((COUNT * 15))m" "${flags[@]}" "$package" >"$file" 2>&1; then
    result=ok
    rm "$file"
  else
    result="FAILED, see $file"
  fi
  printf '%-40s %5d s  %s\n' "$name" $((SECONDS - start)) "$result"
}

# Each job is a process group of its own, which ends with this script.
set -m
job=
trap 'for job in $(jobs -pr); do kill -- "-$job"; done; exit 130' INT TERM
for package in "${packages[@]}"; do
  while (($(jobs -pr | wc -l) >= JOBS)); do wait -n; done
  one "$package" &
done
wait

if rmdir "$output" 2>/dev/null; then
  echo "no failure in $COUNT runs of ${#packages[@]} packages"
  exit
fi
printf '\nfailures in %d runs:\n' "$COUNT"
grep -hoE -e '^ *--- FAIL: [^ ]+' -e 'WARNING: DATA RACE' -e '^panic: .*' "$output"/*.log | sed 's/^ *//' | sort | uniq -c | sort -rn
exit 1
