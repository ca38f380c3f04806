#!/usr/bin/env bash
# Runs cells of the fault matrix on the local Kubernetes with three nodes, and writes a table to
# dist/faults.md. The environment chooses the cells; see docs/testing.md.
#
# - CELL=FAULT/OPERATION runs one cell, and CELL=FAULT/OPERATION/SIZE one at that size.
# - N=10 runs ten cells that SEED chooses.
# - ALL=1 runs every cell, which takes hours.
# - CORE=1 runs two cells that take less than two minutes.
#
# SEED is the time unless it is set. A cluster that this run brought up goes with it; one that
# was up stays.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
export ETCD_OPERATOR_CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
LOCAL=$ETCD_OPERATOR_CACHE/tools/local

arguments=()
if [[ -n ${CELL:-} ]]; then
  arguments=(-cell="$CELL")
elif [[ -n ${N:-} ]]; then
  arguments=(-cells="$N")
elif [[ -n ${ALL:-} ]]; then
  arguments=(-all)
elif [[ -n ${CORE:-} ]]; then
  arguments=(-core)
else
  echo "nothing was chosen: run make faults with CELL=FAULT/OPERATION, N=10, ALL=1 or CORE=1; see docs/testing.md" >&2
  exit 2
fi
if [[ -n ${SEED:-} ]]; then arguments+=(-seed="$SEED"); fi

hack/packages.sh
make --no-print-directory local-tool
if ! "$LOCAL" status >/dev/null 2>&1; then
  trap 'make --no-print-directory down' EXIT
  make --no-print-directory up NODES=3
else
  make --no-print-directory up NODES=
fi
KUBECONFIG=$("$LOCAL" kubeconfig)
ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir)
ETCD_OPERATOR_LOCAL=$LOCAL
export KUBECONFIG ETCD_OPERATOR_BIN ETCD_OPERATOR_LOCAL
# The test runs without `go test` around it, which has a time limit: all cells take hours.
mkdir -p bin
CGO_ENABLED=0 go test -trimpath -c -o bin/faults.test ./test/faults
bin/faults.test -test.v -test.run '^TestFaults$' "${arguments[@]}"
