#!/usr/bin/env bash
# Builds everything of a release into dist/release/VERSION: release.sh VERSION. The same commit
# gives the same files. With RELEASE_KEY (a file with an Ed25519 key in PKCS #8) it also signs
# which files were built from which commit. RELEASE_DOWNLOAD is the URL below which users will
# find the files. It installs Go modules: cyclonedx-gomod, Helm 4, krew, and those of hack/release
# and test/charts.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
# shellcheck source=hack/tools/tools.sh
source hack/tools/tools.sh
version=${1:?name the version, such as v0.2.0}
image=quay.io/etcd-operator/etcd-operator:$version
source=https://github.com/etcd-operator/etcd-operator
download=${RELEASE_DOWNLOAD:-$source/releases/download/$version}
out=$ROOT/dist/release/$version
architectures=(amd64 arm64)
plugins=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64)

fail() {
  echo "release: $*" >&2
  exit 1
}
step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$ ]] || fail "$version is not a version such as v0.2.0"
[[ -z $(git status --porcelain) ]] || fail "the work tree has changes that no commit has: commit them first"
grep -q "newTag: $version\$" artifacts/install/kustomization.yaml ||
  fail "artifacts/install/kustomization.yaml installs another version: set newTag to $version there, and appVersion in charts/*/Chart.yaml"
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS=-trimpath
package=k8s.io/component-base/version
ldflags="-s -w -X $package.gitVersion=$version -X $package.gitCommit=$commit -X $package.gitTreeState=clean"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

# compile OS ARCHITECTURE DIRECTORY PROGRAM...
compile() {
  local os=$1 architecture=$2 directory=$3
  shift 3
  mkdir -p "$directory"
  GOOS=$os GOARCH=$architecture go build -buildvcs=false -ldflags "$ldflags" -o "$directory/" "$@"
}

# pack ARCHIVE DIRECTORY: an archive that depends on names and contents only.
pack() {
  (cd "$2" && tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -cf - -- *) | gzip -n >"$1"
}

images=()
for architecture in "${architectures[@]}"; do
  step "programs for linux/$architecture"
  compile linux "$architecture" "$work/$architecture" ./cmd/agent ./cmd/apiserver ./cmd/controller ./cmd/launcher
  images+=("linux/$architecture=$work/$architecture")
done
step "image $image"
(cd hack/release && go run -buildvcs=false . image --ref "$image" --out "$out/etcd-operator-$version.oci.tar" \
  --entrypoint /controller --license "$ROOT/LICENSE" "${images[@]}") | tee "$out/image-digest.txt"

for platform in "${plugins[@]}"; do
  step "kubectl-etcd for $platform"
  directory=$work/plugin-${platform/\//-}
  compile "${platform%/*}" "${platform#*/}" "$directory" ./cmd/kubectl-etcd
  cp LICENSE "$directory/"
  pack "$out/kubectl-etcd-$version-${platform/\//-}.tar.gz" "$directory"
done

step "manifest for krew, downloads from $download"
(cd "$out" && sha256sum -- kubectl-etcd-*.tar.gz) >"$work/plugins"
(cd hack/release && go run -buildvcs=false . krew --checksums "$work/plugins" --version "$version" --download "$download" \
  --source "$source" --out "$out/etcd.yaml" "${plugins[@]}")
hack/release/verify-plugin.sh "$out/etcd.yaml" "$out" "${plugins[@]}"

step "manifests and charts"
pack "$out/etcd-operator-$version-manifests.tar.gz" artifacts
(cd test/charts && go run -buildvcs=false ./pack "$work/charts" "$ROOT/charts/etcd-operator" "$ROOT/charts/etcd-cluster") >/dev/null
for chart in "$work"/charts/*.tgz; do
  # Helm writes the present time into its archives.
  mkdir "$chart.files"
  tar -xzf "$chart" -C "$chart.files"
  pack "$out/$(basename "$chart")" "$chart.files"
  "$(helm 4)" show chart "$out/$(basename "$chart")" >/dev/null # Helm reads what was packed
done

step "software bill of materials"
sbom=$(cyclonedx_gomod)
for program in agent apiserver controller launcher kubectl-etcd; do
  "$sbom" app -json -licenses -noserial -std -main "cmd/$program" -output "$out/$program-$version.cdx.json" .
  sed -i '/^ *"timestamp": /d' "$out/$program-$version.cdx.json" # the time of the build
done

step "checksums"
(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$out/"
if [[ -n ${RELEASE_KEY:-} ]]; then
  (cd hack/release && go run -buildvcs=false . statement --checksums "$out/SHA256SUMS" --source "$source" --commit "$commit" \
    --version "$version" --key "$RELEASE_KEY" --out "$out/etcd-operator-$version.intoto.json")
  step "statement, signed with $RELEASE_KEY"
else
  step "no statement: RELEASE_KEY names no key"
fi
step "done: $out"
