#!/usr/bin/env bash
# Records what the oldest supported Kubernetes serves, for the tests in test/oldest. To
# be run again when another minor version becomes the oldest.
set -euo pipefail
cd "$(dirname "$0")/.."
export ETCD_OPERATOR_CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
LOCAL=$ETCD_OPERATOR_CACHE/tools/local
make --no-print-directory local-tool
"$LOCAL" build --kubernetes oldest kube-apiserver kubectl
ETCD_OPERATOR_BIN=$("$LOCAL" bin-dir --kubernetes oldest) \
  go test -count=1 ./test/integration -run TestRecordedDiscovery -update-discovery
