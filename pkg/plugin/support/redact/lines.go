// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	objectBegin = regexp.MustCompile(`\{\s*"`)

	pemBegin = regexp.MustCompile(`-----BEGIN [^-]*-----`)
	pemEnd   = regexp.MustCompile(`-----END [^-]*-----`)
	// encodedLine is a line of a PEM block whose first line is not in the log.
	encodedLine = regexp.MustCompile(`^\s*[A-Za-z0-9+/=]{40,}\s*$`)
)

// Lines removes secrets from the lines of a log, in their order. The zero value is ready.
type Lines struct {
	// inPEM is how many lines of a PEM block may follow; 0 outside of one.
	inPEM int
}

// longestPEM is how many lines a PEM block has at most. A log that breaks off in a block is
// readable again behind it.
const longestPEM = 200

// Line returns a line without secrets; false if nothing of it is left.
func (l *Lines) Line(line string) (string, bool) {
	if l.inPEM > 0 {
		l.inPEM--
		if pemEnd.MatchString(line) {
			l.inPEM = 0
		}
		return "", false
	}
	if begin := pemBegin.FindStringIndex(line); begin != nil && !pemEnd.MatchString(line[begin[1]:]) && objectBegin.FindStringIndex(line) == nil {
		l.inPEM = longestPEM
		return text(line[:begin[0]]) + Mark, true
	}
	if encodedLine.MatchString(line) && (isEncoded(line) || len(strings.TrimSpace(line))%64 == 0) {
		return Mark, true
	}
	return record(line), true
}

// record removes secrets from a line that is a JSON object, alone or behind other text. A line
// that only looks like JSON is text.
func record(line string) string {
	found := objectBegin.FindStringIndex(line)
	if found == nil {
		return text(line)
	}
	start := found[0]
	object, rest, err := rewrite(line[start:])
	if err == nil {
		return text(line[:start]) + object + record(rest)
	}
	if start == 0 {
		return Mark + ": this line is no whole JSON object"
	}
	return text(line[:start]) + Mark
}

// rewrite returns a JSON object with its fields in their order and without secrets, and the
// text behind it.
func rewrite(line string) (object, rest string, err error) {
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	var out bytes.Buffer
	if err := rewriteValue(decoder, &out, false); err != nil {
		return "", "", err
	}
	return out.String(), line[decoder.InputOffset():], nil
}

// rewriteValue copies one value. The strings and numbers of a hidden one are removed.
func rewriteValue(decoder *json.Decoder, out *bytes.Buffer, hidden bool) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return rewriteScalar(token, out, hidden)
	}
	out.WriteString(delimiter.String())
	for first := true; decoder.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		inner := hidden
		if delimiter == '{' {
			name, err := decoder.Token()
			if err != nil {
				return fmt.Errorf("read JSON: %w", err)
			}
			field, _ := name.(string) // the decoder accepts no other name
			inner = hidden || isSensitive(field)
			if err := rewriteScalar(text(field), out, hidden); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := rewriteValue(decoder, out, inner); err != nil {
			return err
		}
	}
	end, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	fmt.Fprint(out, end)
	return nil
}

func rewriteScalar(token json.Token, out *bytes.Buffer, hidden bool) error {
	if s, ok := token.(string); ok {
		token = text(s)
	}
	if _, isBool := token.(bool); hidden && !isBool && token != nil {
		token = Mark
	}
	encoded, err := json.Marshal(token)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	out.Write(encoded)
	return nil
}

var (
	words = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+|[0-9]+`)
	// secretName is in the name of a field of a log that holds a secret.
	secretName = regexp.MustCompile(`(?i)` + secretWord + `|authorization|variable-value|pem|environ`)
	// contentNames are words in the names of fields in which etcd logs keys and values.
	contentNames = map[string]bool{
		"request": true, "response": true, "content": true, "detail": true, "details": true, "steps": true, "key": true, "keys": true, "value": true,
		"values": true, "range": true, "compare": true, "trace": true,
	}
)

// isSensitive is true for a field of a log that may hold a secret, or a key or value of etcd.
func isSensitive(field string) bool {
	if secretName.MatchString(field) {
		return true
	}
	for _, word := range words.FindAllString(field, -1) {
		if contentNames[strings.ToLower(word)] {
			return true
		}
	}
	return false
}
