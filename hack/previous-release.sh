#!/usr/bin/env bash
# Builds the release that hack/previous-release.txt names, with its own Makefile, and prints the
# directory: artifacts/ with its manifests, image.tar with its programs, and image.txt with the reference
# of that image. What is built already is only printed. `previous-release.sh commit` prints the commit.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
names=hack/previous-release.txt

fail() {
  echo "previous-release: $*" >&2
  exit 1
}

revision=$(grep -v '^#' "$ROOT/$names") || fail "$names names no revision: add a line with a tag or a commit"
commit=$(git -C "$ROOT" rev-parse --quiet --verify "$revision^{commit}") || if [[ $(git -C "$ROOT" rev-parse --is-shallow-repository) == true ]]; then
  fail "revision $revision of $names is not in this clone, because the clone is shallow: run git fetch --unshallow --tags"
else
  fail "revision $revision of $names is not in this repository: run git fetch --tags, or correct $names"
fi
case ${1:-} in
  commit) echo "$commit" && exit ;;
  "") ;;
  *) fail "unknown argument $1; the only one is commit" ;;
esac

directory=$CACHE/previous/$commit
if [[ ! -f $directory/image.txt ]]; then
  image=quay.io/etcd-operator/etcd-operator:previous-${commit:0:12}
  echo "building the previous release, ${commit:0:12}" >&2
  mkdir -p "$CACHE/previous"
  source=$(mktemp -d "$CACHE/previous/part.XXXXXX")
  trap 'rm -rf "$source"' EXIT
  git -C "$ROOT" archive "$commit" | tar -xf - -C "$source"
  # The tools of today stay as they are: the older Makefile builds its own beside its sources. It finds
  # no git repository, also if the cache is in one.
  (
    unset MAKEFLAGS MAKELEVEL MFLAGS
    # As hack/test.sh compiles, for one cache of Go.
    export CGO_ENABLED=0 GOFLAGS=-trimpath GIT_CEILING_DIRECTORIES=$CACHE/previous
    make -C "$source" --no-print-directory image IMAGE="$image" TOOLS="$source/tools" >&2
  )
  mkdir "$source/built"
  mv "$source/artifacts" "$source/dist/etcd-operator.tar" "$source/built/"
  mv "$source/built/etcd-operator.tar" "$source/built/image.tar"
  echo "$image" >"$source/built/image.txt"
  # Another run may have built the same meanwhile.
  mv -T "$source/built" "$directory" 2>/dev/null || [[ -f $directory/image.txt ]] || fail "$directory cannot be written: remove it and run the command again"
fi
echo "$directory"
