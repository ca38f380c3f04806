#!/usr/bin/env bash
# Runs the linters of .golangci.yml on every module, and checks that logging goes
# through the logger of a context, with constant messages and keys.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

failed=0
lint=$(golangci_lint)
while read -r module; do
  (cd "$module" && "$lint" run --allow-parallel-runners ./...) || failed=1
done < <(go_modules)

vettool=$(logcheck)
(cd "$ROOT" && go vet -vettool="$vettool" -check-contextual -check-structured -check-parameters -check-key -check-value -check-deprecations ./...) || failed=1
exit $failed
