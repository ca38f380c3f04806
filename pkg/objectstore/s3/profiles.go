// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import "strings"

// read adds the profiles of an entry of the Secret. It is false if the entry has another form
// than that of the AWS tools. Nothing else reads these files, so that no two readers can
// understand them differently.
func (p profiles) read(entry, text string) bool {
	var current map[string]setting
	above := "" // the setting of the line above, if it has no value of its own
	for line := range strings.Lines(text) {
		nested := strings.TrimLeft(line, " \t") != line
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, _, closed := strings.Cut(line[1:], "]")
			if !closed {
				return false
			}
			current, above = p.profile(entry, strings.Fields(name)), ""
		case nested && above != "": // it belongs to the setting above, such as s3
		default:
			name, value, found := strings.Cut(line, "=")
			if name = strings.ToLower(strings.TrimSpace(name)); !found || name == "" || current == nil {
				return false
			}
			value = withoutComment(strings.TrimSpace(value))
			current[name] = setting{value, entry}
			if above = ""; value == "" {
				above = name
			}
		}
	}
	return true
}

// profile returns the settings of the section with this name, to be added to. The config file
// has sections of other kinds too, whose settings count for no profile.
func (p profiles) profile(entry string, name []string) map[string]setting {
	switch {
	case len(name) == 1 && (entry == credentialsFile || name[0] == defaultProfile):
	case len(name) == 2 && entry == configFile && name[0] == "profile":
		name = name[1:]
	default:
		return map[string]setting{}
	}
	if p[name[0]] == nil {
		p[name[0]] = map[string]setting{}
	}
	return p[name[0]]
}

// withoutComment cuts a comment off that follows a value.
func withoutComment(value string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		value, _, _ = strings.Cut(value, mark)
	}
	return strings.TrimSpace(value)
}
