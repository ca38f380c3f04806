// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// page has the table of values that read back differently. The tests read it, so that they and the page cannot disagree.
var page = filepath.Join("..", "..", "docs", "how-to", "gitops.md")

const heading = "| written | reads back as | fields |"

// exception is a value that reads back in another form.
type exception struct {
	// key names the exception in messages: a value, with a field if the page names fields.
	key string
	// read is what it reads back as.
	read string
	// always is false if some fields of the type read back as written.
	always bool
}

// allows is true if a value may read back so. Nothing is an absent field, null for a required list, or a default.
func (e exception) allows(written, read string) bool {
	if e.read == Absent && !e.always {
		return read != written
	}
	return read == e.read
}

// exceptions are the rows of the table.
type exceptions struct {
	quantities map[string]string          // what is written, and what reads back
	fields     map[string]map[string]bool // a value, and the fields for which it reads back as nothing
	empty      map[string]bool            // values that read back as nothing, or as the default, of any field
}

func (e exceptions) keys() []string {
	keys := slices.Concat(slices.Collect(maps.Keys(e.quantities)), slices.Collect(maps.Keys(e.empty)))
	for value, fields := range e.fields {
		for field := range fields {
			keys = append(keys, value+" of "+field)
		}
	}
	return keys
}

// of returns the exception for a value of a field.
func (e exceptions) of(path []string, of reflect.Type, value string) (exception, bool) {
	field := path[len(path)-1]
	isItem := field == "[]" || field == mapKey
	if of == reflect.TypeFor[resource.Quantity]() || of == reflect.TypeFor[*resource.Quantity]() {
		read, ok := e.quantities[value]
		return exception{key: value, read: read, always: true}, ok
	}
	if e.fields[value][field] {
		return exception{key: value + " of " + field, read: Absent, always: of.Kind() != reflect.Pointer}, true
	}
	if _, isStruct := structOf(of); isStruct || isItem || of.Kind() == reflect.Pointer {
		return exception{}, false
	}
	return exception{key: value, read: Absent}, e.empty[value]
}

var code = regexp.MustCompile("(the number )?`([^`]+)`")

// tokens returns the code of a cell.
func tokens(cell string) (found []string, numbers []bool) {
	for _, match := range code.FindAllStringSubmatch(cell, -1) {
		found, numbers = append(found, match[2]), append(numbers, match[1] != "")
	}
	return found, numbers
}

// readExceptions reads the table of the page.
func readExceptions(t *testing.T) exceptions {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), heading+"\n")
	if !ok {
		t.Fatalf("%s has no table %q", page, heading)
	}
	read := exceptions{map[string]string{}, map[string]map[string]bool{}, map[string]bool{}}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		if len(cells) != 3 {
			break
		}
		written, numbers := tokens(cells[0])
		reads, _ := tokens(cells[1])
		fields, _ := tokens(cells[2])
		switch {
		case strings.HasPrefix(cells[2], "quantities") && len(written) == len(reads):
			for i, form := range written {
				if !numbers[i] {
					form = strconv.Quote(form)
				}
				read.quantities[form] = strconv.Quote(strings.Trim(reads[i], `"`))
			}
		case strings.HasPrefix(cells[1], "nothing, or the default"):
			for _, form := range written {
				read.empty[form] = true
			}
		case strings.HasPrefix(cells[1], "nothing") && len(written) == 1 && len(fields) > 0:
			read.fields[written[0]] = map[string]bool{}
			for _, field := range fields {
				read.fields[written[0]][field] = true
			}
		default:
			t.Errorf("%s: the tests cannot read this row: %s", page, line)
		}
	}
	return read
}
