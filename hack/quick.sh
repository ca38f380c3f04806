#!/usr/bin/env bash
# Checks what changed since main, within a minute: compiles everything, vets, lints and tests the changed
# packages, and checks the changed prose and scripts. On main itself it takes what is not committed, or
# else the last commit. BASE=COMMIT names another start. It goes on after a failure, and says last what it
# did not run.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"
cd "$ROOT"
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"

# start_of_change: the commit since which something has changed.
start_of_change() {
  local main
  if [[ -n ${BASE:-} ]]; then
    git rev-parse "$BASE"
    return
  fi
  main=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main)
  if [[ $main == "$(git rev-parse HEAD)" && -z $(git status --porcelain) ]]; then main=$(git rev-parse HEAD~1); fi
  echo "$main"
}

base=$(start_of_change)
mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard; } | sort -u)
if [[ ${#changed[@]} -eq 0 ]]; then
  echo "nothing has changed since $base"
  exit 0
fi

# of PATTERN: the changed files whose paths match.
of() { printf '%s\n' "${changed[@]}" | grep -E "$1" || true; }

# packages: the changed packages of the main module. The others are modules of their own.
packages() {
  of '\.go$' | xargs -r -n1 dirname | sort -u | sed 's,^,./,' |
    { xargs -r go list -e -f '{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' 2>/dev/null || true; }
}

mapfile -t packages < <(packages)
# What needs a cluster or minutes is compiled and vetted only.
mapfile -t tested < <(printf '%s\n' "${packages[@]}" | grep -v -e '^$' -e '/test/bench$' -e /test/e2e -e /test/faults -e /test/integration -e /test/simulation -e /pkg/generated/)
mapfile -t prose < <(of '\.(go|md|sh|ya?ml)$' | grep -v /testdata/)
mapfile -t scripts < <(of '\.sh$')

failed=()
# check NAME COMMAND...: runs one check and says how long it took.
check() {
  local name=$1 begin=$SECONDS result=ok
  shift
  "$@" || { result=FAILED && failed+=("$name"); }
  printf '%-8s %-6s %3d s\n' "$name" "$result" $((SECONDS - begin))
}

format() {
  local files
  files=$(of '\.go$' | grep -v -e '\.pb\.go$' | xargs -r gofmt -l)
  [[ -z $files ]] || { printf 'run gofmt -w: %s\n' "$files" && return 1; }
}

lint() { "$(golangci_lint)" run --allow-parallel-runners "${packages[@]/#$(go list -m)/.}"; }

echo "${#changed[@]} files have changed since $(git log -1 --format='%h (%s)' "$base")"
check format format
check build go build ./...
if [[ ${#packages[@]} -gt 0 && -n ${packages[0]} ]]; then
  check vet go vet "${packages[@]}"
  if [[ ${#tested[@]} -gt 0 ]]; then check test go test -short "${tested[@]}"; fi
  check lint lint
fi
if [[ ${#prose[@]} -gt 0 && -n ${prose[0]} ]]; then check prose hack/verify-prose.sh "${prose[@]}"; fi
if [[ ${#scripts[@]} -gt 0 && -n ${scripts[0]} ]]; then check scripts shellcheck --external-sources --source-path=SCRIPTDIR --severity=style "${scripts[@]}"; fi

echo "not run: packages that import the changed ones, the race detector, generated code, simulation (make simulation),"
echo "  integration, and everything on a Kubernetes (make core: 8 minutes; make test: all of it)"
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
