#!/usr/bin/env bash
# Installs what the tests of backups need into the cache. These are servers that stand in for
# object stores (Go programs for S3 and Google Cloud Storage, an npm package for Azure), and
# versions of etcd with etcdutl. With --image it also packs and loads the images of all of them,
# and of the one that stands in for Alibaba's store, for tests on the local Kubernetes.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
CACHE=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}
LOCAL=$CACHE/tools/local
AZURITE=3.37.0
ESBUILD=0.25.12
VERSITYGW=1.8.0
FAKE_GCS=1.56.1

make -C "$ROOT" --no-print-directory -s local-tool
(cd "$ROOT/hack/local" && "$LOCAL" build versitygw fake-gcs-server etcdutl etcd etcd-3.3 etcd-3.5 etcd-3.7 etcdutl-3.7)

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

# npm_package NAME VERSION: installs a package into a directory of its own.
npm_package() {
  local installed=$CACHE/npm/$1
  if grep -qs "\"version\": \"$2\"" "$installed/node_modules/$1/package.json"; then return; fi
  echo "installing $1 $2" >&2
  rm -rf "$installed.next"
  mkdir -p "$installed.next"
  npm install --silent --no-audit --no-fund --prefix "$installed.next" "$1@$2" >&2
  rm -rf "$installed"
  mv "$installed.next" "$installed"
}
npm_package azurite "$AZURITE"
if [[ ${1:-} != --image ]]; then exit; fi

# pack REF ENTRYPOINT FILE=DEST...: makes an image unless there is one that is newer than
# its files, and brings it to the nodes.
pack() {
  local ref=$1 entrypoint=$2 file archive
  archive=$CACHE/images/$(basename "${ref/:/-}").tar
  shift 2
  mkdir -p "$CACHE/images"
  for file in "$@"; do
    if [[ ! -s $archive || ${file%%=*} -nt $archive ]]; then
      "$LOCAL" image --ref "$ref" --out "$archive" --entrypoint "$entrypoint" --user 65532 "$@"
      break
    fi
  done
  "$LOCAL" load "$archive"
}

BIN=$("$LOCAL" bin-dir)
pack "docker.io/versity/versitygw:v$VERSITYGW" '["/versitygw"]' "$(readlink -f "$BIN/versitygw")=/versitygw"
pack "docker.io/fsouza/fake-gcs-server:$FAKE_GCS" '["/fake-gcs-server"]' "$(readlink -f "$BIN/fake-gcs-server")=/fake-gcs-server"

mkdir -p "$CACHE/stores"
CGO_ENABLED=0 go build -C "$ROOT" -trimpath -buildvcs=false -ldflags '-s -w' -o "$CACHE/stores/ossgateway" ./test/ossgateway
pack example.com/etcd-operator/ossgateway:test '["/ossgateway"]' "$CACHE/stores/ossgateway=/ossgateway"

# Azurite and its 450 packages become one file; the part that is omitted belongs to databases
# that it does not use.
bundle=$CACHE/stores/azurite-$AZURITE.js
if [[ ! -s $bundle ]]; then
  npm_package esbuild "$ESBUILD"
  "$CACHE/npm/esbuild/node_modules/.bin/esbuild" --bundle --platform=node --external:pg-hstore --log-level=error --outfile="$bundle.next" \
    "$CACHE/npm/azurite/node_modules/azurite/dist/src/blob/main.js"
  mv "$bundle.next" "$bundle"
fi
node=$(readlink -f "$(command -v node)")
libraries=()
while read -r library; do libraries+=("$library=$library"); done < <(ldd "$node" | grep -o '/[^ ]*')
pack "mcr.microsoft.com/azure-storage/azurite:$AZURITE" '["/usr/bin/node","/azurite.js"]' \
  "$node=/usr/bin/node" "$bundle=/azurite.js" "${libraries[@]}"
