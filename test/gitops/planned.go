// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Absent is what a field reads back as that the object does not have.
const Absent = "absent"

// Difference is a value of a manifest that reads back in another form. Both are JSON.
type Difference struct{ Path, Written, Read string }

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s reads back as %s", d.Path, d.Written, d.Read)
}

// Differences returns the values of a manifest that the live object does not have, or has in another form. Terraform's
// kubernetes_manifest compares in this way: each value of the manifest is a planned value, which the object must have
// after the apply. What the manifest leaves out is unknown in the plan, so that any value will do. Its computed_fields
// are not compared.
func Differences(manifest, live map[string]any, computed ...string) []Difference {
	return differences("", manifest, live, computed)
}

func differences(path string, manifest, live any, computed []string) []Difference {
	if slices.Contains(computed, path) {
		return nil
	}
	if planned, ok := manifest.(map[string]any); ok {
		if object, ok := live.(map[string]any); ok {
			var found []Difference
			for _, key := range slices.Sorted(maps.Keys(planned)) {
				value, exists := object[key]
				if at := join(path, key); exists || planned[key] == nil {
					found = append(found, differences(at, planned[key], value, computed)...)
				} else if !slices.Contains(computed, at) {
					found = append(found, Difference{at, text(planned[key]), Absent})
				}
			}
			return found
		}
	}
	if planned, ok := manifest.([]any); ok {
		if list, ok := live.([]any); ok && len(list) == len(planned) {
			var found []Difference
			for i := range planned {
				found = append(found, differences(join(path, "[]"), planned[i], list[i], computed)...)
			}
			return found
		}
	}
	if manifest == nil || reflect.DeepEqual(manifest, live) {
		return nil
	}
	return []Difference{{path, text(manifest), text(live)}}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
