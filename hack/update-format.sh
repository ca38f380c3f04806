#!/usr/bin/env bash
# Formats every Go file as .golangci.yml says.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

cd "$ROOT"
lint=$(golangci_lint)
files '*.go' | xargs "$lint" fmt
