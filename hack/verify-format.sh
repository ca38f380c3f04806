#!/usr/bin/env bash
# Fails if a Go file is not formatted, or its imports are not grouped, as .golangci.yml
# says; hack/update-format.sh repairs it.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

cd "$ROOT"
lint=$(golangci_lint)
if ! files '*.go' | xargs "$lint" fmt --diff; then
  echo "run hack/update-format.sh and commit the result" >&2
  exit 1
fi
