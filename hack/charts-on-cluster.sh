#!/usr/bin/env bash
# Installs, upgrades, rolls back and uninstalls both charts with Helm 3 and Helm 4 on the local
# Kubernetes; `make up` comes first. It replaces the installation of artifacts/install, and installs
# that again at the end. It does not start while EtcdClusters exist. Arguments choose parts:
#
#   adopt     Helm adopts what artifacts/install installed.
#   single    Both charts with a single API server.
#   commands  The three commands of docs/start/helm.md.
#   ha        Two API servers, three members of a storage of their own, two controllers; and the moves
#             to a single API server and back. With three nodes (`make up NODES=3`) the members of the
#             storage must be on three nodes, and the API servers on two.
#
# HELM names the releases of Helm, by default "3 4". Each step prints the seconds since the start.
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
ha=(--values charts/etcd-operator/ci/ha-values.yaml)
parts=("$@")
if [[ $# == 0 ]]; then parts=(adopt single commands ha); fi

step() { printf '\n== %4d s  %s\n' "$SECONDS" "$*"; }

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

# operator and cluster are the two releases; the caller says which helm.
operator() { "$helm" "$1" etcd-operator charts/etcd-operator -n $namespace "${@:2}"; }
cluster() { "$helm" "$1" example charts/etcd-cluster -n $clusters "${@:2}"; }

# uninstall_rejected HELM: while the EtcdCluster exists, helm uninstall fails, and a rollback to the
# last revision makes the release one that can be upgraded.
uninstall_rejected() {
  local revision
  step "Helm $1: uninstall is rejected while an EtcdCluster exists"
  rejected rejected-while-etcdclusters-exist "$helm" uninstall etcd-operator -n $namespace
  await_api
  await_cluster
  revision=$("$helm" history etcd-operator -n $namespace -o yaml | sed -n 's/^.*revision: //p' | tail -n 1)
  "$helm" rollback etcd-operator "$revision" -n $namespace --wait --timeout=5m
}

with_helm() {
  local helm uid ca
  helm=$(helm "$1")

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

  uninstall_rejected "$1"
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

# request asks the API for the EtcdCluster once, without the retries of a client.
request() { kubectl get --raw "/apis/$group/v1beta2/namespaces/$clusters/etcdclusters/example"; }

# requests_while COMMAND...: the API responds to a request in every half second while the command runs.
requests_while() {
  local counted=$plugin/requests
  : >"$counted"
  touch "$plugin/asking"
  while [[ -e $plugin/asking ]]; do
    echo "$(date +%T) $(request 2>&1 >/dev/null)" >>"$counted"
    sleep 0.5
  done &
  "$@"
  rm "$plugin/asking"
  wait $!
  if grep -v ' $' "$counted"; then fail "requests failed, although another API server was there"; fi
  echo "$(wc -l <"$counted") requests, and none failed"
}

# spread: members of the storage and API servers share no node, if there are three nodes.
spread() {
  local label nodes
  [[ $(kubectl get nodes -o name | wc -l) -ge 3 ]] || return 0
  for label in storage=3 apiserver=2; do
    nodes=$(kubectl get pods -n $namespace -l "app.kubernetes.io/name=etcd-operator-${label%=*}" --no-headers \
      -o custom-columns=NODE:.spec.nodeName,ENDS:.metadata.deletionTimestamp | awk '$2 == "<none>" {print $1}' | sort -u | wc -l)
    [[ $nodes == "${label#*=}" ]] || fail "pods of etcd-operator-${label%=*} are on $nodes nodes, not on ${label#*=}"
  done
}

# remember notes what nothing may change, and unchanged compares: the EtcdCluster, its pods and its key.
remember() {
  cluster_uid=$(kubectl get etcd example -n $clusters -o jsonpath='{.metadata.uid}')
  pod_uids=$(members)
}
unchanged() {
  await_api
  same "UID of the EtcdCluster" "$cluster_uid" "$(kubectl get etcd example -n $clusters -o jsonpath='{.metadata.uid}')"
  await_cluster
  same "UIDs of the pods" "$pod_uids" "$(members)"
  [[ $(etcdctl_in_leader get kept --print-value-only) == yes ]] || fail "the key that was written is not there"
}

# with_ha HELM: what docs/how-to/high-availability.md says about Helm.
with_ha() {
  local helm ca leader cluster_uid pod_uids
  helm=$(helm "$1")

  step "Helm $1: install two API servers"
  kubectl create namespace $namespace
  kubectl label namespace $namespace pod-security.kubernetes.io/enforce=restricted
  operator install "${ha[@]}" --wait --timeout=5m
  await_api
  spread
  step "Helm $1: create a cluster of three members"
  kubectl create namespace $clusters
  cluster install --set storage.size=1Gi --wait --timeout=5m
  await_cluster
  etcdctl_in_leader put kept yes
  remember
  ca=$(ca_bundle)

  step "Helm $1: upgrade and roll back two API servers"
  # Helm keeps the values of before where none are given, and forgets them where one is: type embedded.
  rejected "keep the objects in managed storage" operator upgrade --set controller.maxConcurrentBackups=5
  requests_while operator upgrade --reuse-values --set controller.maxConcurrentBackups=5 --set 'apiserver.extraArgs={--v=1}' --wait --timeout=5m
  kubectl get -n $namespace deployment/etcd-operator-controller -o yaml | grep -q -- --max-concurrent-backups=5
  kubectl get -n $namespace deployment/etcd-operator-apiserver -o yaml | grep -q -- --v=1
  unchanged
  same caBundle "$ca" "$(ca_bundle)"
  requests_while "$helm" rollback etcd-operator 1 -n $namespace --wait --timeout=5m
  unchanged
  same caBundle "$ca" "$(ca_bundle)"
  spread

  uninstall_rejected "$1"

  step "Helm $1: uninstall with force, while members run"
  operator upgrade --reuse-values --set uninstall.force=true --wait --timeout=5m
  leader=$(kubectl get etcd example -n $clusters -o jsonpath='{.status.leader}')
  "$helm" uninstall etcd-operator -n $namespace --wait --timeout=5m
  absent "$api"
  same "UIDs of the pods" "$pod_uids" "$(members)"
  kubectl exec -n $clusters "$leader" -c etcd -- etcdctl get kept --print-value-only | grep -qx yes
  kubectl get pvc -n $namespace data-etcd-operator-storage-{0,1,2} etcd-operator-storage-backup

  step "Helm $1: install again on the PVCs that stayed"
  rejected "PVC data-etcd-operator-storage-0 of an installation with type managed exists" operator install
  operator install "${ha[@]}" --wait --timeout=5m
  unchanged

  step "Helm $1: move to a single API server"
  # Without values Helm would take those of before. It takes over the PVC that the script creates.
  APPLY="$helm upgrade etcd-operator charts/etcd-operator -n $namespace --reset-values --take-ownership" COPY=$plugin/to-single.db artifacts/ha/storage.sh to-single
  unchanged
  absent -n $namespace statefulset/etcd-operator-storage
  step "Helm $1: move to two API servers"
  rejected "keep the objects in embedded storage" operator upgrade "${ha[@]}"
  APPLY="$helm upgrade etcd-operator charts/etcd-operator -n $namespace ${ha[*]}" COPY=$plugin/from-single.db artifacts/ha/storage.sh from-single
  unchanged
  spread

  step "Helm $1: uninstall two API servers"
  "$helm" uninstall example -n $clusters
  absent -n $clusters etcd/example
  "$helm" uninstall etcd-operator -n $namespace --wait --timeout=5m
  absent "$api"
  kubectl delete namespace $namespace $clusters
}

finish() {
  rm -rf "$output" "$plugin"
  step "install artifacts/install again"
  kubectl delete customresourcedefinition etcdclusters.$group --ignore-not-found
  # What a run that failed has left: kubectl apply would keep fields that Helm has set.
  "$(helm 4)" uninstall etcd-operator -n $namespace --no-hooks --ignore-not-found --wait --timeout=3m
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

if [[ " ${parts[*]} " == *" adopt "* ]]; then
  step "kubectl to Helm 4: adopt what artifacts/install installed"
  "$(helm 4)" install etcd-operator charts/etcd-operator -n $namespace --take-ownership --force-conflicts --wait --timeout=3m
  await_api
  "$(helm 4)" uninstall etcd-operator -n $namespace --wait --timeout=3m
fi
kubectl delete -k artifacts/install --ignore-not-found
kubectl delete clusterrolebinding etcd-operator-apiserver:read-tls --ignore-not-found
absent "$api"

for release in ${HELM:-3 4}; do
  for part in "${parts[@]}"; do
    case $part in
    adopt) ;;
    single) with_helm "$release" ;;
    commands) three_commands "$release" ;;
    ha) with_ha "$release" ;;
    *) fail "$part is no part: $0 [adopt] [single] [commands] [ha]" ;;
    esac
  done
done
step "these parts work with Helm ${HELM:-3 4}: ${parts[*]}"
