#!/usr/bin/env bash
# Installs, upgrades, rolls back and uninstalls both charts with Helm 3 and Helm 4 on the local
# Kubernetes, and types the three commands of docs/start/helm.md; `make up` comes first. It replaces
# the installation of artifacts/install, and installs that again at the end. It does not start
# while EtcdClusters exist.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

LOCAL=${LOCAL:-$TOOLS/local}
KUBECONFIG=$("$LOCAL" kubeconfig)
PATH=$("$LOCAL" bin-dir):$PATH
export KUBECONFIG PATH LOCAL
cd "$ROOT"
namespace=etcd-operator-system
clusters=charts-test
group=etcd.database.coreos.com
api=apiservice/v1beta2.$group
output=$(mktemp)
plugin=$(mktemp -d)

step() { printf '\n== %s\n' "$*"; }

fail() {
  echo "$*" >&2
  exit 1
}

# rejected TEXT COMMAND...: the command must fail and print the text.
rejected() {
  local text=$1
  shift
  if "$@" >"$output" 2>&1; then fail "succeeded, although it must fail: $*"; fi
  grep -qF -- "$text" "$output" || fail "the error lacks \"$text\": $(cat "$output")"
}

# same WHAT BEFORE AFTER: a value that an upgrade or a rollback must not change.
same() { [[ -n $2 && $2 == "$3" ]] || fail "$1 was \"$2\" and is \"$3\""; }

ca_bundle() { kubectl get "$api" -o jsonpath='{.spec.caBundle}'; }
members() { kubectl get pods -n $clusters -l etcd_cluster=example -o jsonpath='{.items[*].metadata.uid}'; }
await_api() { kubectl wait --for=condition=Available --timeout=120s "$api"; }
await_cluster() { kubectl wait -n $clusters --for=condition=Ready --timeout=180s etcd/example; }
etcdctl_in_leader() {
  kubectl exec -n $clusters "$(kubectl get etcd example -n $clusters -o jsonpath='{.status.leader}')" -c etcd -- etcdctl "$@"
}
absent() { kubectl wait --for=delete --timeout=120s "$@" >/dev/null; }

with_helm() {
  local helm uid ca revision
  helm=$(helm "$1")
  operator() { "$helm" "$1" etcd-operator charts/etcd-operator -n $namespace "${@:2}"; }
  cluster() { "$helm" "$1" example charts/etcd-cluster -n $clusters "${@:2}"; }

  step "Helm $1: rejected beside a custom resource definition of the group"
  kubectl apply -f - <<EOF
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: etcdclusters.$group}
spec:
  group: $group
  names: {kind: EtcdCluster, plural: etcdclusters}
  scope: Namespaced
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
EOF
  kubectl create namespace $namespace
  rejected "exist: etcdclusters.$group." operator install
  kubectl delete customresourcedefinition etcdclusters.$group
  absent "$api"

  step "Helm $1: install"
  kubectl label namespace $namespace pod-security.kubernetes.io/enforce=restricted
  operator install --wait --timeout=3m
  await_api
  kubectl create namespace $clusters
  cluster install --set size=1 --set storage.size=1Gi --wait --timeout=3m
  await_cluster
  etcdctl_in_leader put kept yes

  step "Helm $1: upgrade and roll back the operator"
  uid=$(members)
  ca=$(ca_bundle)
  operator upgrade --set controller.maxConcurrentBackups=5 --wait --timeout=3m
  kubectl get -n $namespace deployment/etcd-operator-controller -o yaml | grep -q -- --max-concurrent-backups=5
  await_api
  same caBundle "$ca" "$(ca_bundle)"
  "$helm" rollback etcd-operator 1 -n $namespace --wait --timeout=3m
  await_api
  same caBundle "$ca" "$(ca_bundle)"
  same "UIDs of the pods" "$uid" "$(members)"

  step "Helm $1: upgrade and roll back a cluster"
  rejected "at '/size'" cluster upgrade --reuse-values --set size=8
  rejected "spec.pod.labels" cluster upgrade --reuse-values --set spec.pod.labels.app=mine
  cluster upgrade --reuse-values --set size=3 --wait --timeout=3m
  await_cluster
  "$helm" rollback example 1 -n $clusters
  await_cluster
  same size 1 "$(kubectl get etcd example -n $clusters -o jsonpath='{.spec.size}')"
  [[ $(etcdctl_in_leader get kept --print-value-only) == yes ]] || fail "the key that was written is not there"

  step "Helm $1: uninstall is rejected while an EtcdCluster exists"
  rejected rejected-while-etcdclusters-exist "$helm" uninstall etcd-operator -n $namespace
  await_api
  await_cluster
  revision=$("$helm" history etcd-operator -n $namespace -o yaml | sed -n 's/^.*revision: //p' | tail -n 1)
  "$helm" rollback etcd-operator "$revision" -n $namespace --wait --timeout=3m
  operator upgrade --wait --timeout=3m

  step "Helm $1: uninstall"
  "$helm" uninstall example -n $clusters
  absent -n $clusters etcd/example
  kubectl get pvc -n $clusters -l etcd_cluster=example -o name | grep -q persistentvolumeclaim
  "$helm" uninstall etcd-operator -n $namespace --wait --timeout=3m
  absent "$api"
  kubectl get -n $namespace pvc/etcd-operator-apiserver-data

  step "Helm $1: install again on the PVC that stayed"
  operator install --wait --timeout=3m
  await_api
  "$helm" uninstall etcd-operator -n $namespace --wait --timeout=3m
  kubectl delete namespace $namespace $clusters
}

# three_commands HELM: what docs/start/helm.md says, and what helm uninstall leaves of it.
three_commands() {
  local helm uid
  helm=$(helm "$1")
  kubectl create namespace $clusters

  step "Helm $1: three commands to a cluster with a backup"
  "$helm" install etcd-operator charts/etcd-operator -n $namespace --create-namespace --wait --timeout=3m
  await_api # a person needs longer to type the next command
  "$helm" install prod charts/etcd-cluster -n $clusters --set backup.volume.size=1Gi
  kubectl etcd backup prod -n $clusters --yes --timeout=5m
  kubectl etcd check backed-up prod -n $clusters --timeout=1m
  uid=$(kubectl get pvc/prod-backups -n $clusters -o jsonpath='{.metadata.uid}')

  step "Helm $1: the PVC with the backups stays, and is adopted"
  kubectl etcd check healthy prod -n $clusters --timeout=5m
  "$helm" uninstall prod -n $clusters
  absent -n $clusters etcd/prod
  kubectl get -n $clusters pvc/prod-backups
  "$helm" install prod charts/etcd-cluster -n $clusters --set size=1 --set storage.size= --set backup.volume.size=1Gi
  kubectl etcd backup prod -n $clusters --yes --timeout=5m
  same "UID of the PVC with the backups" "$uid" "$(kubectl get pvc/prod-backups -n $clusters -o jsonpath='{.metadata.uid}')"
  "$helm" uninstall prod -n $clusters
  absent -n $clusters etcd/prod
  kubectl delete namespace $clusters # while the API can delete the EtcdBackups in it
  "$helm" uninstall etcd-operator -n $namespace --wait --timeout=3m
  kubectl delete namespace $namespace
}

finish() {
  rm -rf "$output" "$plugin"
  step "install artifacts/install again"
  kubectl delete customresourcedefinition etcdclusters.$group --ignore-not-found
  kubectl delete secrets -n $namespace -l owner=helm,name=etcd-operator --ignore-not-found # of a run that failed
  hack/install.sh
}

[[ -z $(kubectl get etcd -A -o name) ]] || fail "EtcdClusters exist, and this script uninstalls the operator: delete them first"
kubectl delete namespace $clusters --ignore-not-found
"$LOCAL" load "$("$LOCAL" images-dir)"/kubectl-v*.tar
helm 3 >/dev/null
helm 4 >/dev/null
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$plugin/kubectl-etcd" ./cmd/kubectl-etcd
PATH=$plugin:$PATH
trap finish EXIT

step "kubectl to Helm 4: adopt what artifacts/install installed"
"$(helm 4)" install etcd-operator charts/etcd-operator -n $namespace --take-ownership --force-conflicts --wait --timeout=3m
await_api
"$(helm 4)" uninstall etcd-operator -n $namespace --wait --timeout=3m
kubectl delete -k artifacts/install --ignore-not-found
kubectl delete clusterrolebinding etcd-operator-apiserver:read-tls --ignore-not-found
absent "$api"

for release in 3 4; do
  with_helm "$release"
  three_commands "$release"
done
echo "the charts work with Helm 3 and Helm 4"
