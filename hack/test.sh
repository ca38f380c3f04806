#!/usr/bin/env bash
# Runs the named parts of the tests, prints how long each took and, last, which tests failed.
# It continues after a part that failed, so that one run tells everything, and fails at the
# end. Parts with a plus before their names (+simulation) run one after the other at a lower
# priority beside the parts that follow them; their output is printed when they end.
set -uo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT" || exit 1
export ETCD_OPERATOR_CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
TOOLS=$ETCD_OPERATOR_CACHE/tools
LOCAL=$TOOLS/local
report=()
failures=()
ours=
beside=
beside_parts=
output=
results=$(mktemp -d)

# Everything is compiled as the programs are, so that the linters, the tests, the image and
# the local Kubernetes share one cache: each other way compiles 2,000 packages once more.
# The race detector, which needs cgo, is the only other way.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"

# gotest ARGUMENT...: go test with one line a package and the output of failures.
gotest() {
  CGO_ENABLED=$([[ $1 == -race ]] && echo 1 || echo 0) "$TOOLS/gotestsum" --format "${FORMAT:-pkgname-and-test-fails}" \
    --format-hide-empty-pkg --hide-summary=skipped --jsonfile-timing-events "$(mktemp "$results/events.XXXX")" -- "$@"
}

# slowest_tests: the tests that took longest, for those who keep the whole run short.
slowest_tests() {
  cat "$results"/events.* 2>/dev/null | "$TOOLS/gotestsum" tool slowest --threshold 20s --num 25
}

# cpu sets CPU to the seconds of a processor that the programs of this run have used. What a part leaves running does
# not count: the local Kubernetes.
cpu() {
  local user system spent
  times >"$results/cpu"
  { read -r && read -r user system; } <"$results/cpu"
  CPU=0
  for spent in "${user%.*}" "${system%.*}"; do CPU=$((CPU + ${spent%m*} * 60 + ${spent#*m})); done
}

# reported NAME RESULT START CPU: adds a line to the report.
reported() {
  local before=$4
  cpu
  report+=("$(printf '%-12s %-6s %4d s %6d s of a processor' "$1" "$2" $((SECONDS - $3)) $((CPU - before)))")
}

# what_failed: for each part that failed, the name and the first lines of each test that failed.
# Of a part that failed outside of a test, such as a build, the last lines. They are the end of
# a run, where a reader of a long log looks first.
what_failed() {
  local part
  for part in "${failures[@]}"; do
    printf '\n== %s failed\n' "$part"
    case $(head -n 1 "$results/part.$part") in
      '== '*' failed') tail -n 100 "$results/part.$part" ;; # parts that ran beside the others have said it
      *) grep -A6 '^=== FAIL' "$results/part.$part" | cut -c1-200 | tail -n 60 | grep . || tail -n 40 "$results/part.$part" | cut -c1-200 ;;
    esac
  done
}

tools() {
  mkdir -p "$TOOLS"
  (cd hack/tools && GOFLAGS=-trimpath GOBIN=$TOOLS go install -buildvcs=false gotest.tools/gotestsum)
}

# compile compiles what all tests import, before anything is measured: at the low priority beside end-to-end
# tests it takes ten times as long, and it slows them.
compile() {
  local start=$SECONDS result=ok
  cpu
  local before=$CPU
  printf '\n== compile\n'
  if ! { CGO_ENABLED=1 go list -race -export -test -deps ./... && go list -export -test -deps ./...; } 2>"$results/part.compile" >/dev/null; then
    result=FAILED
    failures+=(compile)
  fi
  reported compile $result "$start" "$before"
}

unit_packages() { go list ./... | grep -v -e '/test/bench$' -e /test/e2e -e /test/integration -e /test/simulation -e /pkg/generated/; }

run_verify() { hack/verify.sh; }

run_unit() {
  hack/object-stores.sh || return
  # shellcheck disable=SC2046
  gotest -race -timeout=60m -skip '^TestKilledAtEveryRequest$' $(unit_packages | grep -v /pkg/planner/cluster$) &&
    (cd hack/local && gotest ./...) && (cd hack/olm && gotest -count=1 ./...) && (cd hack/release && gotest ./...) &&
    (cd test/charts && gotest -count=1 ./...) &&
    (cd test/argocd && gotest ./...) && (cd test/prometheus && gotest ./...) && (cd test/prometheus/podmonitors && gotest ./...)
}

# Unit tests that take minutes of a processor, without the race detector. The planner of clusters
# starts no goroutines, and its tests evaluate millions of states, which takes ten times as long
# under the detector. Every seventh of them; all take minutes more. The agent that is killed at every request packs a database again after each
# kill. Its other tests have the detector.
run_states() { gotest -timeout=60m ./pkg/planner/cluster && gotest -timeout=60m -run '^TestKilledAtEveryRequest$' ./cmd/agent; }

# Every eighth cut of the sweep; all of them take minutes more: -sweep-every=1.
run_simulation() { FORMAT=standard-verbose gotest -count=1 -timeout=80m ./test/simulation -schedules=1000 -sweep-every=8; }

# What takes hours, and is for the night before a release. Each line goes on after a failure.
run_nightly() {
  local result=0
  gotest -count=1 -timeout=0 ./pkg/planner/cluster -exhaustive -states-every=1 || result=1
  FORMAT=standard-verbose gotest -count=1 -timeout=0 ./test/simulation -schedules=100000 -node-schedules=5000 -sweep-every=1 || result=1
  ETCD_OPERATOR_NIGHTLY=yes ETCD_OPERATOR_CONSUMER_ROUNDS=20 ETCD_OPERATOR_DATABASE_MIB=8192 TIMEOUT=6h AUDIT=yes E2E_BUDGET=0 run_e2e || result=1
  ALL=1 hack/faults.sh || result=1
  { make --no-print-directory down up && make --no-print-directory charts-on-cluster; } || result=1
  make --no-print-directory down || result=1
  return $result
}

run_integration() {
  make --no-print-directory local-build &&
    ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir ${KUBERNETES:+--kubernetes "$KUBERNETES"}) gotest -race -count=1 ./test/integration/...
}

# Three nodes, so that nodes can fail; a cluster that is up is taken as it is. With AUDIT=yes the
# requests of the controller are logged, and a right that it never uses is a failure. Then the core
# cells of the fault matrix.
run_e2e() {
  # TestFlux and TestDashboards use modules of their own, and TestHighAvailability the previous release.
  # These are compiled before anything is measured.
  make --no-print-directory local-tool && (cd hack/local && "$LOCAL" build network-policies) && (cd test/flux && go test -run '^$' .) &&
    hack/prometheus.sh && hack/previous-release.sh >/dev/null || return
  if [[ $E2E_BUDGET == 0 ]]; then
    AFTER=core_faults on_cluster "${E2E_NODES:-}" "${KUBERNETES:-}" 3 ./test/e2e
  else
    AFTER=other_e2e on_cluster "${E2E_NODES:-}" "${KUBERNETES:-}" 3 ./test/e2e -core
  fi
}

# How long the others begin after the core suite, for a CI that ends a run after a while: a busy machine takes twice as
# long. The names of those that were skipped are printed. 0: all of them run.
E2E_BUDGET=${E2E_BUDGET:-0}
# shellcheck disable=SC2317 # run_e2e names it in AFTER
other_e2e() {
  local result=0
  gotest -count=1 -timeout=60m -parallel=4 ./test/e2e -rest -budget="$E2E_BUDGET" || result=1
  printf 'skipped:%s\n' "$(grep -h '"Action":"skip"' "$results"/events.* | sed -n 's/.*"Test":"\([^"/]*\)".*/ \1/p' | sort -u | tr -d '\n')"
  [[ $result == 0 ]] && core_faults
}

# Twenty flows and the core cells of the fault matrix, for the loop of a change.
run_core() {
  AFTER=core_faults on_cluster "${E2E_NODES:-}" "${KUBERNETES:-}" 3 ./test/e2e -core
  local result=$?
  echo "not run: $(($(cat test/e2e/*_test.go | grep -c '^func Test[A-Z]') - 20)) more end-to-end tests, the oldest Kubernetes, unit tests, simulation, integration (make test: all of it)"
  return $result
}

# One test of each kind and the demo on the oldest supported Kubernetes, and whether what it serves is what
# the recorded discovery document says.
run_e2e_oldest() {
  AFTER=hack/demo.sh on_cluster 1 oldest 1 ./test/e2e -oldest &&
    ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir --kubernetes oldest) gotest -race -count=1 -run '^TestRecordedDiscovery$' ./test/integration
}

# The core cells of the fault matrix, which take less than two minutes; `make faults` runs others.
run_faults() { on_cluster "${E2E_NODES:-}" "${KUBERNETES:-}" 3 ./test/faults -core; }
# shellcheck disable=SC2317 # run_e2e names it in AFTER
core_faults() { gotest -count=1 -timeout=20m ./test/faults -core; }

# on_cluster NODES KUBERNETES DEFAULT_NODES ARGUMENT...: end-to-end tests, and then the command AFTER,
# on the cluster that is up, or on a cluster for these tests only.
on_cluster() {
  local nodes=$1 kubernetes=$2 default=$3 result
  shift 3
  if ! "$LOCAL" status >/dev/null 2>&1; then
    ours=yes
    nodes=${nodes:-$default}
    # A run that was killed, or a machine that was restarted, leaves the objects of its cluster.
    make --no-print-directory down || return
  fi
  make --no-print-directory up NODES="$nodes" KUBERNETES="$kubernetes" AUDIT="${AUDIT:-}" && (
    KUBECONFIG=$("$LOCAL" kubeconfig) ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir) ETCD_OPERATOR_LOCAL=$LOCAL
    export KUBECONFIG ETCD_OPERATOR_BIN ETCD_OPERATOR_LOCAL
    gotest -count=1 -timeout="${TIMEOUT:-75m}" -parallel=4 "$@" && ${AFTER:-true}
  )
  result=$?
  finish
  return $result
}

# After how many seconds no further part begins, for a CI that ends a run after a while. 0: all of them run. Parts that run
# beside the others have a limit of their own, from their start.
LAST_START=${LAST_START:-0}
LAST_START_BESIDE=${LAST_START_BESIDE:-0}

run() {
  case $1 in
    verify) run_verify ;;
    unit) run_unit ;;
    states) run_states ;;
    simulation) run_simulation ;;
    integration) run_integration ;;
    e2e) run_e2e ;;
    e2e-oldest) run_e2e_oldest ;;
    core) run_core ;;
    faults) run_faults ;;
    nightly) run_nightly ;;
    *)
      echo "unknown part $1" >&2
      return 2
      ;;
  esac
}

finish() {
  # A cluster that this run brought up goes with it; one that was up stays.
  if [[ -n $ours ]]; then make --no-print-directory down; fi
  ours=
}

# start_beside PART...: runs parts in a process group of their own at a lower priority.
start_beside() {
  output=$(mktemp)
  printf '\n== %s: at a lower priority beside what follows; output until then in %s\n' "$*" "$output"
  # End-to-end tests on a real cluster time out where they share the CPU evenly. Linux schedules
  # sessions as groups (autogroup), with a priority of their own: that of single processes,
  # which nice sets, counts only where there are no such groups.
  beside_parts=$*
  LAST_START=$LAST_START_BESIDE setsid nice -n 10 bash -c 'echo 10 2>/dev/null >"/proc/$$/autogroup"; exec "$@"' - "$ROOT/hack/test.sh" "$@" >"$output" 2>&1 &
  beside=$!
}

# finish_beside: waits for the parts that run beside the others, and prints what they said.
finish_beside() {
  [[ -n $beside ]] || return 0
  printf '\n== waiting for the parts that run beside the others\n'
  wait "$beside" || failures+=("${beside_parts// /-}")
  beside=
  cat "$output"
  # Its own report says which of its parts failed, and how.
  sed -n '/^== .* failed$/,$p' "$output" >"$results/part.${beside_parts// /-}"
  [[ -s $results/part.${beside_parts// /-} ]] || cp "$output" "$results/part.${beside_parts// /-}"
  rm -f "$output"
}

trap '[[ -z $beside ]] || kill -- "-$beside"; finish; exit 130' INT TERM
trap 'rm -rf "$results"' EXIT

tools || exit 1
# Where they cannot be installed the part that needs one says so.
hack/packages.sh || echo "packages of Debian are missing; see hack/packages.sh" >&2
while [[ $# -gt 0 ]]; do
  lowest=()
  while [[ ${1:-} == +* ]]; do lowest+=("${1#+}") && shift; done
  if [[ ${#lowest[@]} -gt 0 ]]; then
    compile
    start_beside "${lowest[@]}"
  fi
  [[ $# -gt 0 ]] || break
  if [[ $LAST_START != 0 && $SECONDS -gt $LAST_START ]]; then
    printf '\n== %s is skipped: the run has taken %d s, and no part begins after %d s (LAST_START)\n' "$1" "$SECONDS" "$LAST_START"
    report+=("$(printf '%-12s skipped' "$1")")
    shift
    continue
  fi
  printf '\n== %s\n' "$1"
  start=$SECONDS
  cpu
  before=$CPU
  # Through a descriptor that the part does not inherit: a Kubernetes that stays up would
  # hold it, and tee would not end.
  exec 9> >(tee "$results/part.$1")
  copies=$!
  if run "$1" >&9 2>&1 9>&-; then result=ok; else
    result=FAILED
    failures+=("$1")
  fi
  exec 9>&-
  wait "$copies" # for the last lines of the part
  reported "$1" $result "$start" "$before"
  shift
done
finish_beside

printf '\n== times\n'
printf '%s\n' "${report[@]}"
printf '%-12s %-6s %4d s\n' total "$([[ ${#failures[@]} == 0 ]] && echo ok || echo FAILED)" "$SECONDS"
slowest_tests
what_failed
exit $((${#failures[@]} > 0))
