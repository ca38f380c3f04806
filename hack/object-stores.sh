#!/usr/bin/env bash
# Installs what the tests of backups need into the cache: servers that stand in for
# object stores (Go programs for S3 and Google Cloud Storage, an npm package for Azure)
# and etcdutl. With --image it also
# packs and loads the one that tests on the local Kubernetes run.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
LOCAL=$CACHE/tools/local
AZURITE=3.37.0
VERSITYGW=1.8.0

make -C "$ROOT" --no-print-directory -s local-tool
(cd "$ROOT/hack/local" && "$LOCAL" build versitygw fake-gcs-server etcdutl)

# Azurite is a program for Node.
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "installing nodejs and npm, which Azurite needs" >&2
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "install nodejs and npm by hand: this is not root on Debian" >&2
    exit 1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends nodejs npm >&2 ||
    { apt-get --quiet=2 update >&2 && DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends nodejs npm >&2; }
fi
installed=$CACHE/npm/azurite
if ! grep -qs "\"version\": \"$AZURITE\"" "$installed/node_modules/azurite/package.json"; then
  echo "installing azurite $AZURITE" >&2
  rm -rf "$installed.next"
  mkdir -p "$installed.next"
  npm install --silent --no-audit --no-fund --prefix "$installed.next" "azurite@$AZURITE" >&2
  rm -rf "$installed"
  mv "$installed.next" "$installed"
fi

if [[ ${1:-} == --image ]]; then
  archive=$CACHE/images/versitygw-$VERSITYGW.tar
  program=$("$LOCAL" bin-dir)/versitygw
  if [[ ! -s $archive || $program -nt $archive ]]; then
    mkdir -p "$CACHE/images"
    "$LOCAL" image --ref "docker.io/versity/versitygw:v$VERSITYGW" --out "$archive" --entrypoint '["/versitygw"]' --user 65532 "$(readlink -f "$program")=/versitygw"
  fi
  "$LOCAL" load "$archive"
fi
