#!/usr/bin/env bash
# Writes the generated pages of docs/reference from the Go sources and the flags of the
# programs, and the dashboards. With a directory as argument it writes only the pages, and there. hack/verify-docs.sh fails
# while the pages differ from what this writes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-docs/reference}
go run ./hack/reference -out "$out"
go run ./hack/reference/flags -out "$out"
[[ $out != docs/reference ]] || go run ./hack/dashboards
