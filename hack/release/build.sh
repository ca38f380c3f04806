#!/usr/bin/env bash
# Sourced by hack/release.sh: how programs and archives are made, and how manifests name the image. The bytes
# depend on the commit, and not on the directory or on settings of the machine. The caller sets ldflags and
# SOURCE_DATE_EPOCH.
set -euo pipefail

# The order of names in archives.
export LC_ALL=C
# What programs are made for, also if the user has set something else with go env -w.
export CGO_ENABLED=0 GOFLAGS=-trimpath GOWORK=off GOAMD64=v1 GOARM64=v8.0

# compile OS ARCHITECTURE DIRECTORY PACKAGE...
compile() {
  local os=$1 architecture=$2 directory=$3
  shift 3
  mkdir -p "$directory"
  GOOS=$os GOARCH=$architecture go build -buildvcs=false -ldflags "${ldflags:?}" -o "$directory/" "$@"
}

# pack ARCHIVE DIRECTORY: an archive that depends on names and contents only.
pack() {
  (cd "$2" && tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@${SOURCE_DATE_EPOCH:?}" -cf - -- *) | gzip -n >"$1"
}

# pin DIRECTORY IMAGE DIGEST: the manifests and charts below the directory name the image, which has a tag, by its
# digest, too. Only manifests of a release know the digest.
pin() {
  local directory=$1 image=$2 digest=$3 name=${2%:*}
  local kustomization=$directory/artifacts/install/kustomization.yaml chart=$directory/charts/etcd-operator/Chart.yaml
  grep -rlF "image: $image" "$directory/artifacts" | xargs sed -i "s,image: $image\$,&@$digest,"
  sed -i "s,^    newTag: ${image##*:}\$,&\n    # The digest of this release. Remove it if you change newTag or build the image yourself.\n    digest: $digest," "$kustomization"
  sed -i "s,^annotations:\$,&\n  etcd.database.coreos.com/image-digest: $digest," "$chart"
  if ! grep -qxF "    digest: $digest" "$kustomization" || ! grep -qF "image-digest: $digest" "$chart" ||
    grep -rF "image: $name" "$directory/artifacts" | grep -vF "image: $image@$digest"; then
    echo "pin: a manifest below $directory does not name the image $image by its digest" >&2
    return 1
  fi
}
