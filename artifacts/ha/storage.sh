#!/bin/sh
# Moves, saves and restores the objects of the operator. It needs kubectl with the rights of an
# administrator, and this directory. docs/how-to/high-availability.md says when to use what.
#
#   storage.sh from-single     Make this installation of one with a single API server.
#   storage.sh to-single       Go back.
#   storage.sh save FILE       Write a snapshot of the storage, which keeps serving.
#   storage.sh backup FILE     Write the newest scheduled backup, also while the storage is lost. It is
#                              rejected if it is older than MAX_AGE seconds, by default 7200.
#   storage.sh restore FILE    Replace what is stored by a snapshot.
#   storage.sh restore-single FILE
#                              Replace what a single API server stores by a snapshot.
#   storage.sh shrink          Remove the old versions of all objects from a storage that is full.
#
# backup works with a single API server, too. REGISTRY is a mirror of the images, by default the
# --image-registry of the controller. REVISION is the first revision of what is brought back, by default that of the clock. If Helm installed the chart etcd-operator, set APPLY to the command that upgrades the release, such as
#   APPLY='helm upgrade etcd-operator charts/etcd-operator -n etcd-operator-system --values ha.yaml'
set -eu
here=$(cd "$(dirname "$0")" && pwd)
namespace=etcd-operator-system
single=$here/../apiserver-data
# shellcheck source=move.sh
. "$here/move.sh"
# Another kustomization that contains artifacts/ha, or artifacts/install for to-single.
installation=${INSTALLATION:-}
# A command that applies the installation, instead of kubectl apply -k.
apply=${APPLY:-}
# A backup is made every half hour: a newest one that is older says that the backups are elsewhere, or have failed.
max_age=${MAX_AGE:-7200}

fail() {
  echo "storage.sh: $*" >&2
  exit 1
}

# What starts the programs as they were before stop, one command a line.
stopped='' resume=''
moved='' back='' # after the data has moved, what brings it back, if anything does

# ended: says what to do if the script ends while the programs are stopped.
ended() {
  code=$?
  [ "$code" -ne 0 ] && [ -n "$stopped" ] || exit "$code"
  echo "storage.sh: the programs are stopped: remove the cause, and type the same command again, which completes it" >&2
  [ -z "$moved" ] || resume="${back:+ $back}"
  [ -z "$resume" ] || printf 'storage.sh: to start the programs as they were instead:%s\n' "$resume" >&2
  exit "$code"
}
trap ended EXIT

k() { kubectl -n "$namespace" "$@"; }

# removed FILE: deletes what the file creates, and waits.
removed() { kubectl delete -f "$1" --ignore-not-found --wait=true >/dev/null; }

registry=${REGISTRY-$(k get deployment etcd-operator-controller --ignore-not-found -o jsonpath='{.spec.template.spec.containers[0].args}' 2>/dev/null |
  tr '",[]' '\n' | sed -n 's/^--image-registry=//p')}

# manifest FILE: prints the file with the images of the mirror.
manifest() { sed "${registry:+s#image: [a-z]*[.]io/#image: ${registry%/}/#}" "$1"; }

# create FILE: creates the pod of a file, in the place of one that an earlier attempt has left.
create() { removed "$1" && manifest "$1" | kubectl apply -f - >/dev/null; }

# why POD: prints what keeps the containers of a pod from their start.
why() {
  k get pod "$1" --ignore-not-found -o jsonpath='{range .status.conditions[?(@.type=="PodScheduled")]}  {.message}{"\n"}{end}{range .status.initContainerStatuses[*]}  {.state.waiting.reason} {.state.waiting.message}{"\n"}{end}{range .status.containerStatuses[*]}  {.state.waiting.reason} {.state.waiting.message}{"\n"}{end}' |
    grep '[^ ]' >&2 || true
}

# stuck POD OUTCOME: ends the script because of a pod.
stuck() {
  why "$1"
  fail "$2: kubectl -n $namespace logs $1 --all-containers"
}

# can_start: the images of the pods that this script applies can be pulled. Asked before anything is stopped.
can_start() {
  create "$here/images.yaml"
  runs etcd-operator-storage-images ||
    stuck etcd-operator-storage-images "the pods of this script cannot start, and nothing was stopped: copy the images of artifacts/ha/images.yaml to a mirror under their paths, and set REGISTRY=registry.example.com/mirror"
  removed "$here/images.yaml"
}

# created FILE: creates what the file describes. What exists stays as it is.
created() { kubectl get -f "$1" >/dev/null 2>&1 || kubectl apply -f "$1" >/dev/null; }

# applied DIRECTORY: applies the installation, by default the one in the directory. From here on there is no way back
# but another command of this script: other programs may start.
applied() {
  resume='' moved=''
  if [ -n "$apply" ]; then sh -c "$apply"; else kubectl apply -k "${installation:-$1}"; fi
}

# halt KIND/NAME: the pods end, and applied starts them again. With APPLY the object is deleted: Helm 4
# does not change replicas that kubectl has set, and the chart rejects values that do not fit to a Deployment.
halt() {
  k get "$1" >/dev/null 2>&1 || return 0
  stopped=yes
  if [ -n "$apply" ]; then
    resume=" the command that upgrades the release, with the values of before"
    k delete "$1" >/dev/null
    return
  fi
  replicas=$(k get "$1" -o jsonpath='{.spec.replicas}')
  # If an earlier attempt has stopped them, the installation tells how many there are.
  if [ "$replicas" != 0 ]; then
    resume="$resume
  kubectl -n $namespace scale $1 --replicas=$replicas"
  elif [ -z "$resume" ]; then
    resume=" kubectl apply -k of the installation that ran before"
  fi
  k scale "$1" --replicas=0 >/dev/null
}

# stop: no program writes from here on. Members of EtcdClusters run on.
stop() {
  # kubectl apply would keep fields that Helm has set.
  if [ -z "$apply" ] && [ "$(k get deployment etcd-operator-apiserver --ignore-not-found -o jsonpath='{.metadata.annotations.meta\.helm\.sh/release-name}')" ]; then
    fail "Helm has installed this; nothing was changed: set APPLY to the command that upgrades the release, as described at the top of this script"
  fi
  halt deployment/etcd-operator-controller
  halt deployment/etcd-operator-apiserver
  k wait --for=delete pod -l 'app.kubernetes.io/name in (etcd-operator,etcd-operator-apiserver),app.kubernetes.io/component in (apiserver,controller)' --timeout=180s >/dev/null ||
    fail "the programs still run; delete the pods of a node that is off with --force: kubectl -n $namespace get pods -o wide"
}

# started: waits until the API is served.
started() {
  if has_members; then k rollout status statefulset etcd-operator-storage --timeout=300s; fi
  k rollout status deployment etcd-operator-apiserver --timeout=300s
  kubectl wait --for=condition=Available --timeout=120s apiservice/v1beta2.etcd.database.coreos.com
  k rollout status deployment etcd-operator-controller --timeout=300s
  stopped=
}

# fetch POD PATH FILE: copies a file out of the container shell of a pod.
fetch() {
  k wait --for=condition=Ready "pod/$1" --timeout=180s >/dev/null || stuck "$1" "pod $1 is not ready"
  k exec "$1" -c shell -- cat "$2" >"$3.part"
  size=$(k exec "$1" -c shell -- stat -c %s "$2")
  [ "$(wc -c <"$3.part")" -eq "$size" ] || fail "$3.part has not the $size bytes of $2 in pod $1: run the command again"
  mv "$3.part" "$3"
}

# runs POD: waits until the pod runs; false if it fails, or does not start.
runs() {
  tries=0
  while [ "$tries" -lt 90 ]; do
    case $(k get pod "$1" --ignore-not-found -o jsonpath='{.status.phase}') in
    Running | Succeeded) return 0 ;;
    Failed) return 1 ;;
    esac
    tries=$((tries + 1))
    sleep 2
  done
  return 1
}

# save FILE: from the first member that reads through a quorum. A member without a quorum has an older state.
save() {
  for member in 0 1 2; do
    removed "$here/save.yaml"
    manifest "$here/save.yaml" | sed "s/etcd-operator-storage-0\./etcd-operator-storage-$member./" | kubectl apply -f - >/dev/null
    if runs etcd-operator-storage-save; then
      fetch etcd-operator-storage-save /copy/etcd-operator.db "$1"
      removed "$here/save.yaml"
      return
    fi
    echo "storage.sh: member $member of the storage gives no snapshot that a quorum confirms:" >&2
    why etcd-operator-storage-save
    k logs etcd-operator-storage-save --all-containers >&2 || true
  done
  fail "no member of the storage reads through a quorum: bring the members back (kubectl -n $namespace get pods -o wide), or restore a backup: storage.sh backup FILE, then storage.sh restore FILE"
}

# etcdctl MEMBER ARGUMENT...: runs etcdctl in a member of the storage.
etcdctl() {
  pod=etcd-operator-storage-$1
  shift
  k exec "$pod" -c etcd -- etcdctl --cacert=/certificates/ca.crt --cert=/certificates/tls.crt --key=/certificates/tls.key --command-timeout=120s "$@"
}

# revision: prints that of the members, read through a quorum. It is the same only while nothing is written.
revision() {
  for member in 0 1 2; do
    header=$(etcdctl "$member" get compact_rev_key --keys-only --command-timeout=10s -w json) || continue
    echo "$header" | grep -o '"revision":[0-9][0-9]*' && return
  done | head -n 1 | grep -o '[0-9]*$'
}

# shrink: while etcd is at its quota, the API servers cannot compact it, because they write before. The alarm ends last:
# etcd raises it again if a database is still at its quota.
shrink() {
  for member in 0 1 2; do
    revision=$(etcdctl "$member" endpoint status -w json | grep -o '"revision":[0-9]*' | head -n 1 | cut -d : -f 2) || revision=
    [ -z "$revision" ] || break
  done
  [ -n "$revision" ] || fail "no member of the storage responds: kubectl -n $namespace get pods -o wide"
  etcdctl "$member" compact --physical "$revision" ||
    echo "storage.sh: not compacted, which is right if revision $revision was compacted before; going on" >&2
  for each in 0 1 2; do
    etcdctl "$each" defrag || fail "member $each was not defragmented; nothing was lost: run the command again when the member runs"
  done
  etcdctl "$member" alarm disarm
  etcdctl "$member" endpoint status --cluster -w table
}

backup() {
  create "$here/backups.yaml"
  made etcd-operator-storage-backups || stuck etcd-operator-storage-backups "the PVC with the backups cannot be read"
  # A manifest is written after its snapshot was verified. Names end with the time at which the backup was due. A clock
  # that was ahead has given a name or a file a time of the future: what was stored after it is newer.
  now=$(k exec etcd-operator-storage-backups -c shell -- date -u '+%s %Y-%m-%d-%H:%M:%S')
  newest=$(k exec etcd-operator-storage-backups -c shell -- find /backups -name '*.manifest.json' -exec stat -c '%Y %n' '{}' + |
    awk -F_ -v "now=$now" '{ split(now, at, " "); due = $NF; sub(/[.]manifest[.]json$/, "", due); if ($0 + 0 <= at[1] && due "" <= at[2] "") print }' |
    sort -n | tail -n 1)
  [ -n "$newest" ] || fail "the PVC etcd-operator-storage-backup has no backup that was verified and has a time before now ($now)"
  age=$((${now%% *} - ${newest%% *}))
  snapshot=${newest#* }
  snapshot=${snapshot%.manifest.json}
  [ "$age" -le "$max_age" ] ||
    fail "the newest backup on the PVC etcd-operator-storage-backup is that of ${snapshot##*_} UTC, stored $((age / 60)) minutes ago. Restoring it undoes everything since then. If the EtcdBackup etcd-operator-storage names another PVC or a store now, take the newest file from there (docs/how-to/operator-state.md, \"From a store\"). If no newer one exists, because backups failed or the API was away, run the command again with MAX_AGE=$((age + 3600))"
  fetch etcd-operator-storage-backups "$snapshot" "$1"
  removed "$here/backups.yaml"
  echo "the backup of ${snapshot##*_} UTC"
}

# put FILE POD PATH: copies a file into the container shell of a pod, where it appears when it is complete.
put() { k exec -i "$2" -c shell -- sh -c "cat >$3.part && [ \$(stat -c %s $3.part) -eq $(wc -c <"$1") ] && mv $3.part $3" <"$1"; }

# What one pod that fills a member goes through.
receives() { k wait --for=jsonpath='{.status.initContainerStatuses[0].state.running}' "pod/$1" --timeout=180s >/dev/null; }
received() { put "$file" "$1" "/copy/$attempt.db"; }
made() { k wait --for=condition=Ready "pod/$1" --timeout=300s >/dev/null; }
swaps() { k exec "$1" -c start -- touch /copy/swap; }
swapped() { k wait --for=jsonpath='{.status.phase}'=Succeeded "pod/$1" --timeout=60s >/dev/null; }

# each STEP OUTCOME: takes the step for all three.
each() {
  for i in 0 1 2; do
    "$1" "etcd-operator-storage-fill-$i" || stuck "etcd-operator-storage-fill-$i" "member $i was not filled, $2"
  done
}

# fill FILE: makes the data of all members from the file. Until that of all is made, none is replaced; if
# this script ends between two, both sides reject each other, and the same command completes it.
fill() {
  file=$1
  attempt=$(date -u +%Y%m%d-%H%M%S)-$$
  created "$here/volumes.yaml"
  removed "$here/fill.yaml"
  # Ten revisions for each millisecond since 1970: more than a storage hands out. REVISION is for one that is ahead of that,
  # because a clock was wrong or an older release has raised it.
  manifest "$here/fill.yaml" | sed "s/value: \"attempt\"/value: \"$attempt\"/; s/value: \"0\"/value: \"${REVISION:-$(date +%s)0000}\"/" | kubectl apply -f - >/dev/null
  for step in receives received made; do each "$step" "and nothing was changed"; done
  # A GitOps tool may have started the programs again.
  [ -z "$(k get pods -l 'app.kubernetes.io/name in (etcd-operator-storage,etcd-operator-apiserver),app.kubernetes.io/component in (storage,apiserver)' -o name)" ] ||
    fail "pods of the storage or of the API server run again, and nothing was changed: suspend the tool that starts them, and run the command again"
  for step in swaps swapped; do each "$step" "run the command again"; done
  removed "$here/fill.yaml"
}

# fill_single FILE: makes the data of a single API server, which does not run, from the file.
fill_single() {
  created "$here/../install/15-apiserver-data.yaml"
  removed "$single/bring-back.yaml"
  manifest "$single/bring-back.yaml" | sed "s/--revision=0/--revision=${REVISION:-0}/" | kubectl apply -f - >/dev/null # 0: that of the clock
  pod=etcd-operator-apiserver-bring-back
  receives "$pod" || stuck "$pod" "the volume was not filled"
  put "$1" "$pod" /copy/etcd-operator.db
  k wait --for=jsonpath='{.status.phase}'=Succeeded "pod/$pod" --timeout=300s >/dev/null || stuck "$pod" "the volume was not filled"
  removed "$single/bring-back.yaml"
  mark from-single- # the members have older objects from here on
}

restore_single() {
  [ -s "$1" ] || fail "$1 does not exist or is empty"
  can_start
  stop
  fill_single "$1"
  applied "$here/../install" >/dev/null
  started
  echo "done; what was stored before is in etcd-before-TIME on the PVC etcd-operator-apiserver-data"
}

has_members() { k get statefulset etcd-operator-storage >/dev/null 2>&1; }

# installed: where the installed API servers keep the objects: "single", "members", "external", or nothing without them.
installed() {
  args=$(k get deployment etcd-operator-apiserver --ignore-not-found -o jsonpath='{.spec.template.spec.containers[*].args}') ||
    fail "the Deployment etcd-operator-apiserver cannot be read"
  case $args in
  '') return ;;
  *--embedded-etcd-dir=*) echo single && return ;;
  esac
  servers=$(k get configmap etcd-operator-apiserver-storage --ignore-not-found -o jsonpath='{.data.servers}') ||
    fail "the ConfigMap etcd-operator-apiserver-storage cannot be read"
  case "$args $servers" in
  *//etcd-operator-storage-0.*) echo members ;;
  *) echo external ;;
  esac
}

# is_single: the API server that is installed keeps its objects on its own PVC.
is_single() {
  kept=$(installed) || exit 1
  [ "$kept" = single ]
}

# fits COMMAND: ends the script if the command would fill a storage that the API servers do not use. Without a Deployment it
# goes on: an attempt that was ended may have deleted it.
fits() {
  kept=$(installed)
  members=
  if has_members; then members=members; fi
  case "$1 $kept $members" in
  *" external "*) fail "the API servers keep the objects in an etcd of your own (ConfigMap etcd-operator-apiserver-storage), and nothing was changed: artifacts/ha/README.md, \"An etcd of your own\", says how objects come there" ;;
  "restore single ") fail "a single API server keeps the objects, and nothing was changed: use storage.sh restore-single" ;;
  restore*" single members") fail "a single API server is installed, and the StatefulSet etcd-operator-storage exists. Nothing was changed. To complete a move, run storage.sh to-single, then restore-single; or apply artifacts/ha again, then run storage.sh restore" ;;
  "restore-single "*" members") fail "the StatefulSet etcd-operator-storage exists: this installation is artifacts/ha; use storage.sh restore" ;;
  esac
}

# replace FILE: stops the programs and the members, and fills the members.
replace() {
  stop
  halt statefulset/etcd-operator-storage
  k wait --for=delete pod -l app.kubernetes.io/name=etcd-operator-storage --timeout=180s >/dev/null
  fill "$1"
}

restore() {
  [ -s "$1" ] || fail "$1 does not exist or is empty"
  can_start
  replace "$1"
  mark from-single- # what a move has begun to bring is older
  applied "$here"
  started
}

case "${1:-} $#" in
"from-single 1" | "to-single 1" | "restore 2" | "restore-single 2") fits "$1" ;;
esac
case "${1:-} $#" in
"from-single 1") from_single ;;
"to-single 1") to_single ;;
"save 2") save "$2" ;;
"backup 2") backup "$2" ;;
"restore 2") restore "$2" ;;
"restore-single 2") restore_single "$2" ;;
"shrink 1") shrink ;;
*)
  sed -n '2,/^set/{/^#/p;}' "$0" | cut -c3- >&2
  exit 2
  ;;
esac
