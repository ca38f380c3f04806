// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// healthCheck reads the script out of the page, as a user copies it.
func healthCheck(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	var config struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(block), &config); err != nil {
		t.Fatal(err)
	}
	var customizations map[string]map[string]string
	if err := yaml.Unmarshal([]byte(config.Data["resource.customizations"]), &customizations); err != nil {
		t.Fatal(err)
	}
	script := customizations["etcd.database.coreos.com/*"]["health.lua"]
	if script == "" {
		t.Fatalf("the page has no health check: %s", block)
	}
	return script
}

// TestHealthCheck runs the script as Argo CD does: with the object as the global obj.
func TestHealthCheck(t *testing.T) {
	script := healthCheck(t)
	const ready = `{type = "Available", status = "True"}, {type = "Ready", status = "True", message = "up"}`
	for _, test := range []struct{ name, status, want, message string }{
		{"no status", `nil`, "Progressing", "waiting for the controller"},
		{"not observed", `{conditions = {{type = "Ready", status = "Unknown"}}}`, "Progressing", "waiting for the controller"},
		{"ready", `{observedGeneration = 2, conditions = {` + ready + `}}`, "Healthy", "up"},
		{"ready before the change", `{observedGeneration = 1, conditions = {` + ready + `}}`, "Progressing", "waiting for the controller"},
		{"on the way", `{observedGeneration = 2, conditions = {{type = "Ready", status = "False", message = "joins"}, {type = "Reconciling", status = "True", message = "joins"}}}`, "Progressing", "joins"},
		{"stuck", `{observedGeneration = 2, conditions = {{type = "Ready", status = "False"}, {type = "Stalled", status = "True", reason = "NameConflict", message = "taken"}}}`, "Degraded", "taken"},
		{"paused", `{observedGeneration = 2, conditions = {{type = "Stalled", status = "True", reason = "Paused", message = "paused"}}}`, "Suspended", "paused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := lua.NewState()
			defer state.Close()
			if err := state.DoString("obj = {metadata = {generation = 2}, status = " + test.status + "}"); err != nil {
				t.Fatal(err)
			}
			if err := state.DoString(script); err != nil {
				t.Fatal(err)
			}
			health, ok := state.Get(-1).(*lua.LTable)
			if !ok {
				t.Fatalf("the script returns %v", state.Get(-1))
			}
			if got, message := health.RawGetString("status").String(), health.RawGetString("message").String(); got != test.want || message != test.message {
				t.Errorf("%s %q, want %s %q", got, message, test.want, test.message)
			}
		})
	}
}
