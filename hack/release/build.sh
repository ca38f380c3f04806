#!/usr/bin/env bash
# Sourced by hack/release.sh: how programs and archives are made. Their bytes depend on the commit, and not
# on the directory or on settings of the machine. The caller sets ldflags and SOURCE_DATE_EPOCH.
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
