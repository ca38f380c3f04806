#!/usr/bin/env bash
# Checks every shell script with shellcheck, and workflows and the scripts in them with actionlint.
# Workflows must name actions of others by a commit, and must not have rights by default.
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

# workflows PATTERN lists the lines of workflows and actions that match.
workflows() { files '.github' | xargs grep -HnE -- "$1"; }

failed=0
if workflows '^ *-? *uses: ' | grep -vE 'uses: (\./|[^ @]+@[0-9a-f]{40} # v[0-9.]+$)'; then
  echo "name the action by its commit, and the version in a comment" >&2
  failed=1
fi
for file in .github/workflows/*.yml; do
  # The permissions of the workflow, which is every line up to the first job.
  if ! sed '/^jobs:/,$d' "$file" | grep -A1 '^permissions:$' | grep -qx '  contents: read'; then
    echo "$file: permissions of the workflow must be contents: read; a job may add others" >&2
    failed=1
  fi
done
"$(actionlint)" .github/workflows/*.yml || failed=1
exit $failed
