#!/usr/bin/env bash
# Fails if a generated page of docs/reference is outdated. It also fails if a link, an anchor or
# a file of the concept table leads nowhere. An alert without a runbook, a flag without a row and
# a long sentence of the README are failures, too. So is an empty cell of a generated table, and
# whatever mkdocs warns about, where it is installed (hack/packages.sh).
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

cd "$ROOT"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-docs.sh "$fresh"
outdated=0
for page in "$fresh"/*.md; do
  diff -u "docs/reference/$(basename "$page")" "$page" || outdated=1
done
if ((outdated)); then
  echo "run hack/update-docs.sh and commit the result" >&2
fi
# The pages have no spaces in their names.
# shellcheck disable=SC2046
go run ./hack/reference -check $(files '*.md')
if command -v mkdocs >/dev/null; then
  mkdocs build --strict --quiet --site-dir "$fresh/site"
else
  echo "mkdocs is missing, so the site is not built; hack/packages.sh installs it" >&2
fi
exit "$outdated"
