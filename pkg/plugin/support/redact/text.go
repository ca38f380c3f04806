// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
)

// Mark takes the place of what was removed.
const Mark = "REDACTED"

// replacement is a pattern and what takes its place.
type replacement struct {
	pattern *regexp.Regexp
	with    string
}

const (
	// quoted is a string in quotes. The quotes of a string inside another string have backslashes.
	quoted = `\\*"(?:\\.|[^"\\])*(?:"|$)`
	// value is a quoted string or a word.
	value = `(?:` + quoted + `|'[^']*'|[^\s&"']+)`
	// secretWord is in the name of a field that holds a secret.
	secretWord = `(?:passw(?:or)?d|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|account[-_]?key|signature|cookie|session[-_]?key)`
	// contentWord is the name of a field that holds keys or values of etcd.
	contentWord = `(?:key|value|range_begin|range_end|prefix|lease_key)`
)

// replacements are carried out in this order.
var replacements = []replacement{
	{regexp.MustCompile(`-----BEGIN [^-]*-----(?s:.*?)(?:-----END [^-]*-----|$)`), Mark},
	{regexp.MustCompile(`(?i)\b(authorization|cookie)(\\*["']?\s*[:=]\s*).*`), "${1}${2}" + Mark},
	{regexp.MustCompile(`(?i)\b(bearer)\s+[A-Za-z0-9._~+/=-]{6,}`), "${1} " + Mark},
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAGE-SECRET-KEY-[A-Z0-9]+|\bya29\.[\w.-]+|\bgh[a-z]_\w{20,}`), Mark},
	{regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?`), Mark},
	{regexp.MustCompile(`(\w://)[^/\s"']*@`), "${1}" + Mark + "@"},
	{regexp.MustCompile(`(?i)([?&](?:sig|se|sv|X-Amz-[\w-]+|X-Goog-[\w-]+)=)[^&\s"']+`), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\b[\w.-]*` + secretWord + `[\w.-]*\\*["']?\s*[:=]\s*)` + value), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(--[\w-]*` + secretWord + `[\w-]*\s+)` + value), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\b(?:password|passphrase)\s+(?:is\s+)?)` + value), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\\*"(?:[\w -]*(?:request|response|content|detail|steps|range)[\w -]*|key|value)\\*"\s*:\s*)` + quoted), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\b(?:request|response|result)\s+)` + quoted), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\b` + contentWord + `:\s*)` + quoted), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\b` + contentWord + `:\s*)[^\s;,"]+`), "${1}" + Mark},
}

// opaque is a run of characters that may be encoded data.
var opaque = regexp.MustCompile(`[A-Za-z0-9+/_=-]{24,}`)

// text removes secrets from one line, or from a text that is no log.
func text(s string) string {
	for _, r := range replacements {
		s = r.pattern.ReplaceAllString(s, r.with)
	}
	return opaque.ReplaceAllStringFunc(s, func(run string) string {
		if isEncoded(run) {
			return Mark
		}
		return run
	})
}

// isEncoded is true for a run that may be a secret in base64. Names of Kubernetes and
// hexadecimal hashes have no upper case; words have no digits.
func isEncoded(run string) bool {
	const digits, lower, upper = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.ContainsAny(run, digits) && strings.ContainsAny(run, lower) && strings.ContainsAny(run, upper)
}

// Text removes secrets from a text, line by line.
func Text(s string) string {
	var lines Lines
	parts := strings.Split(s, "\n")
	kept := parts[:0]
	for _, part := range parts {
		if line, ok := lines.Line(part); ok {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
