#!/usr/bin/env bash
# Installs the Debian packages that the tests need and that are missing: protoc for the
# check of generated code, shellcheck for the scripts, ipset for NetworkPolicies, strace for disks
# that take no writes. mkdocs makes the site of the documentation. tmux and chromium show the prompt
# and the page of the plugin. What the local Kubernetes and the object stores need they install
# and name themselves. promtool, which tests the alerts, is taken out of its package: an installed
# package would start a Prometheus. Does nothing when run again.
set -euo pipefail
packages=(protobuf-compiler libprotobuf-dev shellcheck make ipset strace mkdocs mkdocs-material tmux chromium)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
if ((${#missing[@]})); then
  echo "installing Debian packages: ${missing[*]}" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

tools=${ETCD_OPERATOR_CACHE:-$HOME/.cache/etcd-operator}/tools
if [[ ! -x $tools/promtool ]] && ! command -v promtool >/dev/null; then
  echo "taking promtool out of the Debian package prometheus" >&2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  apt-get update -qq
  (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root prometheus)
  dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$work/promtool"
  mkdir -p "$tools"
  install -m 0755 "$work/promtool" "$tools/promtool"
fi
