#!/usr/bin/env bash
# Installs the kubectl plugin with krew itself, as users of each platform do, but from archives on
# this machine: verify-plugin.sh MANIFEST ARCHIVES_DIRECTORY PLATFORM... It fails if the manifest is
# not valid, if it lacks a platform or has more, or if an archive is not the one that it names.
source "$(dirname "${BASH_SOURCE[0]}")/../tools/tools.sh"
manifest=$1
archives=$2
shift 2

fail() {
  echo "verify-plugin: $*" >&2
  exit 1
}

"$(validate_krew_manifest)" -manifest "$manifest" -skip-install
found=$(grep -c '^ *uri: ' "$manifest")
[[ $found == "$#" ]] || fail "$manifest has $found platforms, and these were built: $*"
krew=$(krew)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for platform in "$@"; do
  root=$work/${platform/\//-}
  mapfile -t uris < <(sed -n "s,^ *uri: \(.*-${platform/\//-}\.tar\.gz\)$,\1,p" "$manifest")
  [[ ${#uris[@]} == 1 ]] || fail "$manifest has no URI for $platform"
  # krew verifies the checksum of the archive that takes the place of the download.
  KREW_ROOT=$root KREW_OS=${platform%/*} KREW_ARCH=${platform#*/} KREW_NO_UPGRADE_CHECK=1 \
    "$krew" install --manifest="$manifest" --archive="$archives/${uris[0]##*/}" </dev/null >"$work/output" 2>&1 ||
    fail "krew cannot install the plugin for $platform: $(cat "$work/output")"
  compgen -G "$root/bin/kubectl-etcd*" >/dev/null || fail "krew installed no kubectl-etcd for $platform"
  compgen -G "$root/store/*/*/LICENSE" >/dev/null || fail "the archive for $platform has no LICENSE"
done
