#!/usr/bin/env bash
# Builds everything of a release into dist/release/VERSION: release.sh VERSION. The same commit
# gives the same files. With RELEASE_KEY (a file with a private key in PEM) it also signs the images,
# the files that users install, and which files were built from which commit. RELEASE_KEY_PASSWORD
# is the password of an encrypted key. RELEASE_DOWNLOAD is the URL below which users will find the
# files. It installs Go modules: cyclonedx-gomod, Helm 4, krew, and those of hack/release
# and test/charts, and of hack/olm.
set -euo pipefail
key=${RELEASE_KEY:+$(realpath "$RELEASE_KEY")} # programs below run in other directories
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
# shellcheck source=hack/tools/tools.sh
source hack/tools/tools.sh
# shellcheck source=hack/release/build.sh
source hack/release/build.sh
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
# What tests of upgrades need: the previous release, and the objects of this release.
before=$(git describe --tags --match 'v*' --exclude "$version" --abbrev=0 2>/dev/null || true)
previous=$(hack/previous-release.sh commit)
[[ -z $before || $(git rev-parse "$before^{commit}") == "$previous" ]] ||
  fail "the release before $version is $before, and hack/previous-release.txt names $previous: write $before into that file, run make test, and commit"
if [[ $version != *-* ]]; then
  objects=pkg/apis/etcd/install/testdata
  diff -rq "$objects/HEAD" "$objects/$version" >&2 || fail "$objects/$version is not what this code stores: copy $objects/HEAD to it, and commit"
  [[ -d test/released/testdata/$version ]] || fail "test/released has no objects of $version: run go test ./test/released -update=$version, and commit"
fi
[[ -z $(go env GOEXPERIMENT) ]] || fail "GOEXPERIMENT is $(go env GOEXPERIMENT), which changes the programs: go env -u GOEXPERIMENT, and unset it"
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
package=k8s.io/component-base/version
ldflags="-s -w -X $package.gitVersion=$version -X $package.gitCommit=$commit -X $package.gitTreeState=clean"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

images=()
for architecture in "${architectures[@]}"; do
  step "programs for linux/$architecture"
  compile linux "$architecture" "$work/$architecture" ./cmd/agent ./cmd/apiserver ./cmd/controller ./cmd/launcher
  images+=("linux/$architecture=$work/$architecture")
done
step "image $image"
(cd hack/release && go run -buildvcs=false . image --ref "$image" --out "$out/etcd-operator-$version.oci.tar" \
  --entrypoint /controller --license "$ROOT/LICENSE" "${images[@]}") | tee "$out/image-digest.txt"
digest=$(sed 's/.*@//' "$out/image-digest.txt")

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
mkdir "$work/pinned"
cp -r artifacts charts "$work/pinned/"
pin "$work/pinned" "$image" "$digest"
pack "$out/etcd-operator-$version-manifests.tar.gz" "$work/pinned/artifacts"
(cd test/charts && go run -buildvcs=false ./pack "$work/charts" "$work/pinned/charts/etcd-operator" "$work/pinned/charts/etcd-cluster") >/dev/null
for chart in "$work"/charts/*.tgz; do
  # Helm writes the present time into its archives.
  mkdir "$chart.files"
  tar -xzf "$chart" -C "$chart.files"
  pack "$out/$(basename "$chart")" "$chart.files"
  "$(helm 4)" show chart "$out/$(basename "$chart")" >/dev/null # Helm reads what was packed
done

step "bundle for the Operator Lifecycle Manager"
(cd hack/olm && go run -buildvcs=false . --root "$ROOT" --version "$version" --image "$(<"$out/image-digest.txt")" \
  --created "$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)" --out "$work/olm" "${architectures[@]}")
pack "$out/etcd-operator-$version-olm.tar.gz" "$work/olm"

step "schemas of the API"
go run -buildvcs=false ./hack/schemas "$work/schemas"
pack "$out/etcd-operator-$version-schemas.tar.gz" "$work/schemas"

step "software bill of materials"
sbom=$(cyclonedx_gomod)
# The program takes the version of the main module from a tag of the repository, which may not have it. It
# cannot read a work tree that git worktree made. So it reads a clone with the tag.
git -c advice.detachedHead=false clone --quiet --no-tags --depth=1 "file://$ROOT" "$work/sources"
[[ $(git -C "$work/sources" rev-parse HEAD) == "$commit" ]] || fail "the clone of $ROOT has another commit than $commit: run the script again"
git -C "$work/sources" -c tag.gpgSign=false tag "$version"
for program in agent apiserver controller launcher kubectl-etcd; do
  "$sbom" app -json -licenses -noserial -std -main "cmd/$program" -output "$out/$program-$version.cdx.json" "$work/sources"
  sed -i '/^ *"timestamp": /d' "$out/$program-$version.cdx.json" # the time of the build
done

step "checksums"
(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$out/"
if [[ -n $key ]]; then
  (cd hack/release && go run -buildvcs=false . statement --checksums "$out/SHA256SUMS" --source "$source" --commit "$commit" \
    --version "$version" --key "$key" --out "$out/etcd-operator-$version.intoto.json")
  step "statement, signed with $key"
  # SHA256SUMS has the digests of all other files.
  (cd hack/release && go run -buildvcs=false . sign --image "$out/etcd-operator-$version.oci.tar" --key "$key" \
    --out "$out/etcd-operator-$version-signatures.oci.tar" "$out"/*.tgz "$out"/*-{manifests,olm}.tar.gz "$out/SHA256SUMS")
  step "signatures of the images and of files"
else
  step "no statement and no signatures: RELEASE_KEY names no key"
fi
step "done: $out"
