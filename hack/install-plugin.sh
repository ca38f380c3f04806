#!/usr/bin/env bash
# Installs the program kubectl-etcd that is named, and what kubectl needs to complete its
# arguments. The directory is PLUGIN_DIR, or the first one of GOBIN, ~/.local/bin,
# /usr/local/bin and the bin of GOPATH that is on the PATH and can be written to.
set -euo pipefail
program=$1

on_path() { [[ :$PATH: == *":$1:"* ]]; }

# choose prints the directory. Without one on the PATH that is the bin of GOPATH.
choose() {
  local last candidate
  last=$(go env GOPATH)/bin
  for candidate in "$(go env GOBIN)" "$HOME/.local/bin" /usr/local/bin "$last"; do
    if [[ -n $candidate && -w $candidate ]] && on_path "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  echo "$last"
}

directory=${PLUGIN_DIR:-$(choose)}
mkdir -p "$directory"
install -m 0755 "$program" "$directory/kubectl-etcd"
cat >"$directory/kubectl_complete-etcd" <<'SCRIPT'
#!/bin/sh
exec kubectl-etcd __complete "$@"
SCRIPT
chmod 0755 "$directory/kubectl_complete-etcd"
echo "installed $directory/kubectl-etcd; type: kubectl etcd status"
if ! on_path "$directory"; then
  echo "kubectl finds plugins on the PATH only; type: export PATH=$directory:\$PATH" >&2
fi
