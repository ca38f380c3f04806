#!/usr/bin/env bash
# A tour on the local Kubernetes: create a cluster, use it, back it up, scale it, break it. It uses
# the kubectl plugin that `make build` has built, and installs it nowhere.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
LOCAL=${LOCAL:-${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}/tools/local}
KUBECONFIG=$("$LOCAL" kubeconfig)
PATH=$("$LOCAL" bin-dir):$PATH
plugin=$(mktemp -d)
ln -s "$ROOT/bin/kubectl-etcd" "$plugin/"
PATH=$plugin:$PATH
export KUBECONFIG PATH
cd "$ROOT"
cluster=example-etcd-cluster
client=demo-client
volume=demo-backups
image=quay.io/coreos/etcd:v3.6.16
watcher=

finish() {
  [[ -z $watcher ]] || kill "$watcher" 2>/dev/null || true
  rm -rf "$plugin"
}
trap finish EXIT
[[ -x bin/kubectl-etcd ]] || {
  echo "bin/kubectl-etcd is missing: run make build" >&2
  exit 1
}

step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

# run COMMAND...: shows the command, then its output.
run() {
  printf '\033[2m$ %s\033[0m\n' "$*"
  "$@"
}

# await_members N: shows every change of the cluster until N of N members are ready
# and nothing is being changed any more. It watches a list: kubectl drops the first
# event of a watch on one named object, which may be the one that is waited for.
await_members() {
  local want=$1 line size ready rest
  local start=$SECONDS
  printf '\033[2m$ kubectl get etcdclusters -w\033[0m\n'
  exec 3< <(exec timeout 300 kubectl get etcdclusters --field-selector metadata.name=$cluster --watch)
  watcher=$!
  while IFS= read -r line <&3; do
    echo "$line"
    read -r _ size ready rest <<<"$line"
    if [[ $size == "$want" && $ready == "$want/$want" ]]; then
      kill "$watcher" 2>/dev/null || true
      watcher=
      exec 3<&-
      echo "$want members ready after $((SECONDS - start)) s"
      return
    fi
  done
  echo "the cluster did not get $want ready members within 300 s:" >&2
  kubectl describe etcdcluster $cluster >&2
  kubectl get pods -l "etcd_cluster=$cluster" -o wide >&2
  return 1
}

etcdctl_in_pod() {
  run kubectl exec $client -- etcdctl "--endpoints=http://$cluster-client:2379" "$@"
}

step "A cluster of three members"
if kubectl get etcdcluster $cluster >/dev/null 2>&1; then
  echo "it is left from an earlier tour: starting over"
  kubectl delete etcdcluster $cluster --wait >/dev/null
  kubectl wait --for=delete pod -l "etcd_cluster=$cluster" --timeout=120s >/dev/null
fi
cat artifacts/examples/example-etcd-cluster.yaml
run kubectl apply -f artifacts/examples/example-etcd-cluster.yaml
await_members 3
run kubectl etcd status $cluster
run kubectl get services -l etcd_cluster=$cluster

step "A client in a pod writes and reads"
kubectl delete pod $client --ignore-not-found --wait >/dev/null
# The image has no shell. An etcd of its own, which nothing uses, keeps the pod running; a watch would
# end with the member that serves it.
run kubectl run $client --image=$image --restart=Never --command -- etcd --data-dir=/tmp/unused
kubectl wait --for=condition=Ready pod/$client --timeout=60s >/dev/null
etcdctl_in_pod put greeting "hello from a pod"
etcdctl_in_pod get greeting

step "A backup"
# The volume stays for the next tour.
kubectl apply -f - >/dev/null <<PVC
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $volume}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
PVC
run kubectl patch etcdcluster $cluster --type=merge --patch \
  '{"spec":{"backup":{"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"'$volume'","path":"etcd"}}}}'
run kubectl etcd backup $cluster --yes --timeout=3m

step "Five members, and back to three"
run kubectl scale etcdcluster/$cluster --replicas=5
await_members 5
run kubectl scale etcdcluster/$cluster --replicas=3
await_members 3

step "A member is lost"
victim=$(kubectl get etcdcluster $cluster -o jsonpath='{.status.leader}')
echo "deleting the leader's pod, $victim, with its data"
run kubectl delete pod "$victim" --wait
run kubectl etcd why $cluster
await_members 3
echo "the data is still there:"
[[ $(kubectl exec $client -- etcdctl "--endpoints=http://$cluster-client:2379" get greeting --print-value-only) == "hello from a pod" ]]
etcdctl_in_pod get greeting
uid=$(kubectl get etcdcluster $cluster -o jsonpath='{.metadata.uid}')
run kubectl get events --field-selector "involvedObject.uid=$uid" \
  --sort-by=.metadata.creationTimestamp -o custom-columns=REASON:.reason,MESSAGE:.message
kubectl delete pod $client --wait=false >/dev/null
run kubectl etcd status $cluster

step "What you can type next"
cat <<TEXT
  export KUBECONFIG=$KUBECONFIG
  export PATH=$("$LOCAL" bin-dir):\$PATH
  make install-plugin                                 # kubectl etcd, which the tour has used
  kubectl etcd status -A                              # every cluster, with what each member says
  kubectl etcd why $cluster               # what is wrong, and what to do
  kubectl etcd restore $cluster           # back to the backup of the tour
  kubectl explain etcdcluster.spec.pod                # every field, documented
  kubectl edit etcdcluster $cluster       # wrong fields are rejected at once, all of them
  kubectl scale etcdcluster/$cluster --replicas=5
  kubectl delete etcdcluster $cluster
  make down                                           # stop the local Kubernetes
TEXT
