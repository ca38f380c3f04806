#!/usr/bin/env bash
# Prints the size of the code in a checkout, as a table: hack/figures.sh [DIRECTORY]
# It counts the Go files below cmd and pkg, without tests and generated code. Run it on two commits
# (git worktree add) to compare them; docs/contributing/size.md has such a comparison.
source "$(dirname "${BASH_SOURCE[0]}")/tools/tools.sh"

lint=$(golangci_lint)
cd "${1:-$ROOT}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find cmd pkg -name '*.go' ! -name '*_test.go' ! -path 'pkg/generated/*' -print0 |
  xargs -0 grep -L '^// Code generated .* DO NOT EDIT\.$' | sort >"$work/files"

# code PATTERN: the lines of all files that match.
code() { xargs -d '\n' grep -hE "$1" <"$work/files" || true; }

# methods: number of methods, package and type, the most first.
methods() {
  xargs -d '\n' grep -HoE '^func \((\w+ )?\*?\w+(\[[^]]*\])?\) ' <"$work/files" |
    sed -E 's|^(.*)/[^/]*:func \((\w+ )?\*?(\w+).*|\1.\3|' | sort | uniq -c | sort -k1,1nr -k2
}

# duplicates: how many fragments of at least 50 syntax tokens have a copy.
duplicates() {
  cat >"$work/config.yml" <<-'END'
	version: "2"
	linters:
	  default: none
	  enable: [dupl]
	  settings:
	    dupl: {threshold: 50}
	issues:
	  max-issues-per-linter: 0
	  max-same-issues: 0
	run:
	  tests: false
	  timeout: 20m
	END
  "$lint" run --config "$work/config.yml" --path-mode abs --allow-parallel-runners --issues-exit-code 0 \
    --show-stats=false --output.text.path "$work/duplicates" --output.text.print-issued-lines=false ./cmd/... ./pkg/... >&2
  grep -c ' (dupl)$' "$work/duplicates" || true
}

methods >"$work/methods"
read -r longest file < <(xargs -d '\n' wc -l <"$work/files" | sed '$d' | sort -k1,1nr | head -n 1)
cat <<END
| figure | value |
|---|---|
| lines | $(xargs -d '\n' cat <"$work/files" | wc -l) |
| files | $(wc -l <"$work/files") |
| exported functions, methods and types | $(code '^(func|type) (\([^)]*\) )?[A-Z]' | wc -l) |
| longest file, in lines | $longest ($file) |
| types with more than 40 methods | $(awk '$1 > 40' "$work/methods" | wc -l) |
| most methods of a type | $(awk 'NR == 1 {print $1 " (" $2 ")"}' "$work/methods") |
| methods of pkg/planner/cluster.Observed | $(awk '$2 == "pkg/planner/cluster.Observed" {n = $1} END {print n + 0}' "$work/methods") |
| fragments of 50 syntax tokens that have a copy (dupl) | $(duplicates) |
END
