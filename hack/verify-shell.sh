#!/usr/bin/env bash
# Checks every shell script with shellcheck.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

if ! command -v shellcheck >/dev/null; then
  echo "shellcheck is missing: install the package of that name" >&2
  exit 1
fi

# The name or the first line of a file shows that it is a script.
scripts() {
  files '*.sh'
  files . | grep -v '\.[a-z]*$' | while read -r file; do
    if head -c 64 "$ROOT/$file" | head -n 1 | grep -aqE '^#!.*\b(ba|da)?sh\b'; then echo "$file"; fi
  done
}

cd "$ROOT"
mapfile -t found < <(scripts)
shellcheck --external-sources --source-path=SCRIPTDIR --severity=style "${found[@]}"
