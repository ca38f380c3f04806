#!/usr/bin/env bash
# Installs the programs from artifacts/install on the local Kubernetes, as a user
# would on any other one, and waits until the API is served. Works again when it is
# installed already, and restarts the programs if their image has changed.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
LOCAL=${LOCAL:-${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}/tools/local}
KUBECONFIG=$("$LOCAL" kubeconfig)
PATH=$("$LOCAL" bin-dir):$PATH
export KUBECONFIG PATH
namespace=etcd-operator-system
start=$SECONDS

digest=$(sha256sum "$ROOT/dist/etcd-operator.tar" | cut -d' ' -f1)
installed=$(kubectl get namespace $namespace --ignore-not-found -o jsonpath='{.metadata.annotations.local/image}')
if kubectl -n $namespace get statefulset etcd-operator-storage >/dev/null 2>&1; then
  echo "artifacts/ha is installed: going back to a single API server" >&2
  (cd "$ROOT/dist" && "$ROOT/artifacts/ha/storage.sh" to-single >&2)
  kubectl -n $namespace delete pvc data-etcd-operator-storage-{0,1,2} --ignore-not-found >/dev/null
fi
kubectl apply -k "$ROOT/artifacts/install" >/dev/null
# The tests and the demonstration look at clusters with TLS in many namespaces.
kubectl apply -f "$ROOT/artifacts/components/read-tls-secrets/binding.yaml" >/dev/null
if [[ -n $installed && $installed != "$digest" ]]; then
  echo "the image has changed: restarting the programs" >&2
  kubectl -n $namespace rollout restart deployment >/dev/null
fi
kubectl annotate --overwrite namespace $namespace "local/image=$digest" >/dev/null

for deployment in $(kubectl -n $namespace get deployment -o name); do
  kubectl -n $namespace rollout status "$deployment" --timeout=180s >&2
done
kubectl wait --for=condition=Available --timeout=120s apiservice/v1beta2.etcd.database.coreos.com >&2
echo "installed in $((SECONDS - start)) s; next: export KUBECONFIG=$KUBECONFIG PATH=$("$LOCAL" bin-dir):\$PATH" >&2
