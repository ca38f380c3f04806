#!/usr/bin/env bash
# Measures on the local Kubernetes what docs/explanation/performance.md describes, and prints a
# table. Arguments go to the program, such as: hack/bench.sh -n 3 -only create,lost
# A cluster that this run brought up goes with it; one that was up stays.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
export ETCD_OPERATOR_CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
LOCAL=$ETCD_OPERATOR_CACHE/tools/local
make --no-print-directory local-tool
if ! "$LOCAL" status >/dev/null 2>&1; then
  trap 'make --no-print-directory down' EXIT
  # The requests of the controller are counted from the audit log.
  "$LOCAL" up --audit
fi
make --no-print-directory up NODES=
if [[ " $* " != *" -only "* || "$*" == *backup* ]]; then hack/object-stores.sh --image; fi
KUBECONFIG=$("$LOCAL" kubeconfig)
ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir)
ETCD_OPERATOR_LOCAL=$LOCAL
export KUBECONFIG ETCD_OPERATOR_BIN ETCD_OPERATOR_LOCAL
mkdir -p bin
go build -buildvcs=false -o bin/bench ./test/bench
uptime >&2
bin/bench "$@"
uptime >&2
