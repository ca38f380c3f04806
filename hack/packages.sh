#!/usr/bin/env bash
# Installs the Debian packages that the tests need and that are missing: protoc for the
# check of generated code, shellcheck for the scripts, ipset for NetworkPolicies, strace for disks
# that take no writes, mkdocs for the site of the documentation. What the local Kubernetes and
# the object stores need they install and name themselves. Does nothing when run again.
set -euo pipefail
packages=(protobuf-compiler libprotobuf-dev shellcheck make ipset strace mkdocs mkdocs-material)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
if ((${#missing[@]})); then
  echo "installing Debian packages: ${missing[*]}" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
