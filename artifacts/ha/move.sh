# shellcheck shell=sh disable=SC2034,SC2154
# The part of storage.sh that moves the objects between a single API server and the members. storage.sh reads it, and has
# the functions and the variables that are not here.

# serving: where the API servers that are ready store the objects: "single", "members", both, or nothing if none is ready.
serving() {
  pods=$(k get pods -l app.kubernetes.io/name=etcd-operator-apiserver,app.kubernetes.io/component=apiserver -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.spec.containers[*].args}{"\n"}{end}') || fail "the pods of the API servers cannot be listed"
  echo "$pods" | awk '$1 == "True" { print (/--embedded-etcd-dir/ ? "single" : "members") }' | sort -u
}

# mark NAME=VALUE, or NAME-: how far a move came, on the PVC of the single API server, which stays in both installations.
mark() {
  pvc=$(k get pvc etcd-operator-apiserver-data --ignore-not-found -o name)
  if [ "$pvc" ]; then k annotate --overwrite "$pvc" "etcd.database.coreos.com/$1" >/dev/null; fi
}

# marked NAME: the value of the mark.
marked() { k get pvc etcd-operator-apiserver-data --ignore-not-found -o jsonpath="{.metadata.annotations.etcd\.database\.coreos\.com/$1}"; }

# not_begun: ends the script if a move has begun and did not fill the members. They are empty or have older objects than
# it has taken, and its mark is the only way to these. Only a user knows if they were filled before the mark was written.
not_begun() {
  reached=$(marked from-single) || exit 1
  case $reached in
  begun-*) fail "an earlier from-single has begun and did not record that it has filled the members, and nothing was changed. The members may be empty or have older objects: kubectl get etcd -A. To complete the move, delete the Deployment etcd-operator-apiserver, and run storage.sh from-single when its pods have ended. If the members have the objects: kubectl -n $namespace annotate pvc etcd-operator-apiserver-data etcd.database.coreos.com/from-single-, and type the command again" ;;
  esac
}

# has_moved: the members have the objects of the single API server. It fails if that is unknown. A StatefulSet alone
# proves nothing: kubectl apply -k artifacts/ha creates it with empty members, beside the pod that serves the objects.
has_moved() {
  now=$(serving) || exit 1
  reached=$(marked from-single) || exit 1
  case $now in
  single)
    case $reached in
    filled-*) fail "an earlier move has filled the members, and a single API server is ready again, so nothing was changed. To complete the earlier move, delete the Deployment etcd-operator-apiserver and type the command again. To move what the single API server has now: kubectl -n $namespace annotate pvc etcd-operator-apiserver-data etcd.database.coreos.com/from-single-, and type the command again" ;;
    esac
    return 1
    ;;
  members)
    has_members || fail "the API servers store the objects in an etcd of your own, and nothing was changed"
    not_begun
    return 0
    ;;
  ?*) fail "API servers with both storages are ready, and nothing was changed: run the command again when the rollout has ended: kubectl -n $namespace get pods" ;;
  esac
  case $reached in
  filled-*) return 0 ;;
  begun-*) return 1 ;;
  esac
  if ! has_members; then return 1; fi
  fail "no API server is ready, so it is unknown whether the single API server or the members have the objects. Nothing was changed. Apply the installation that had the objects, artifacts/install or artifacts/ha, and run the command again when it serves"
}

# served_by_members: completes a move after the members were filled. The mark stays until the members serve: without it, a
# next attempt would move what a single API server has begun since. That one would be ready, too, so it is an error here.
served_by_members() {
  applied "$here"
  if is_single; then
    fail "APPLY has installed a single API server, which does not find the objects: delete the Deployment etcd-operator-apiserver, and type the command again with values for the members (apiserver.storage.type=managed)"
  fi
  started
  mark from-single-
  mark to-single- # what an earlier attempt has filled is older than what the members get from now on
}

from_single() {
  if has_moved; then
    echo "the members have the objects: only what an earlier attempt has left is completed" >&2
    served_by_members
    return
  fi
  k get pvc etcd-operator-apiserver-data >/dev/null || fail "there is no PVC etcd-operator-apiserver-data, so no single API server was installed here: kubectl apply -k artifacts/ha"
  copy=${COPY:-etcd-operator-$(date -u +%Y%m%d-%H%M%S).db}
  can_start
  # Each move has a name, which is in the mark before anything is renamed. An attempt that goes on takes the name from the
  # mark. So take-out.yaml can tell what this move has moved from what an earlier move has left.
  move=$(marked from-single)
  move=${move#*-}
  move=${move:-$(date -u +%Y%m%d-%H%M%S)-$$}
  mark "from-single=begun-$move"
  stop
  moved=yes # take-out.yaml moves the data away: the single API server would begin empty
  removed "$here/take-out.yaml"
  manifest "$here/take-out.yaml" | sed "s/value: \"move\"/value: \"$move\"/" | kubectl apply -f - >/dev/null
  fetch etcd-operator-apiserver-take-out /copy/etcd-operator.db "$copy"
  removed "$here/take-out.yaml"
  back="$(if has_members; then echo "kubectl -n $namespace delete statefulset etcd-operator-storage &&"; fi) ${apply:+APPLY='the command that upgrades the release, with the values of before' }$here/storage.sh restore-single $copy"
  replace "$copy"
  mark "from-single=filled-$move"
  served_by_members
  echo "done; $copy is a copy of the objects, and the PVC etcd-operator-apiserver-data has them in etcd-moved"
}

# filled: the single API server has the objects: an earlier to-single has filled its PVC, and nothing was written to the
# members since. The mark alone proves nothing: kubectl apply -k artifacts/ha lets the members serve again, and leaves it.
filled() {
  taken=$(marked to-single) || exit 1
  if [ -z "$taken" ]; then
    fail "a single API server was installed before its objects were moved, and nothing was changed: install artifacts/ha again, and then run this command"
  fi
  has_members || return 0
  has=$(revision) || fail "no member of the storage reads through a quorum, so it is unknown whether they have newer objects than the single API server, and nothing was deleted. Bring the members back, or delete the StatefulSet etcd-operator-storage if the single API server has the objects. Then type the command again"
  [ "$taken" = "filled-$has" ] ||
    fail "the members were written after an earlier to-single has taken their objects, and nothing was deleted. If they have the newer objects, install artifacts/ha again. If the single API server has them (kubectl get etcd -A), delete the StatefulSet etcd-operator-storage, whose PVCs stay. Then type the command again"
}

to_single() {
  # If an earlier attempt came that far, the single API server has newer objects than the members.
  if ! is_single; then
    has_members || fail "there is no StatefulSet etcd-operator-storage: the installation is no artifacts/ha"
    not_begun
    copy=${COPY:-etcd-operator-$(date -u +%Y%m%d-%H%M%S).db}
    save "$copy" # what fails here has stopped nothing
    can_start
    stop
    taken=$(revision) || fail "no member of the storage reads through a quorum any more"
    save "$copy"
    fill_single "$copy"
    mark "to-single=filled-$taken"
    applied "$here/../install"
    is_single ||
      fail "APPLY has not installed a single API server, which finds the objects on the PVC etcd-operator-apiserver-data: type the command again with other values (helm upgrade without values takes those of before; --reset-values)"
  fi
  started # what fails from here on has stopped nothing
  filled
  k delete statefulset,service,poddisruptionbudget,networkpolicy -l app.kubernetes.io/component=storage --wait=true >/dev/null
  k delete poddisruptionbudget/etcd-operator-apiserver configmap/etcd-operator-apiserver-storage --ignore-not-found >/dev/null
  mark to-single-
  echo "done; ${copy:-the file of the first attempt} is a copy of the objects; the PVCs data-etcd-operator-storage-0 to -2 stay with the objects as they were before"
}
