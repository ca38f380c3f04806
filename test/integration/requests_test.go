// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// requests counts requests by their verb, resource and namespace.
type requests map[request]int

type request struct{ verb, resource string }

// asked returns the requests of the controller so far, from the audit log.
func (s *simulated) asked() requests {
	s.Helper()
	log, err := os.ReadFile(env.auditLog())
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	counts := requests{}
	for line := range bytes.Lines(log) {
		var event auditv1.Event
		if !bytes.Contains(line, []byte(controllerUser)) || json.Unmarshal(line, &event) != nil || event.User.Username != controllerUser ||
			event.Stage != auditv1.StageResponseComplete {
			continue
		}
		what := request{verb: event.Verb}
		if o := event.ObjectRef; o != nil {
			what.resource = o.Resource
			if o.Subresource != "" {
				what.resource += "/" + o.Subresource
			}
		}
		counts[what]++
	}
	return counts
}

func (r requests) since(before requests) requests {
	rest := requests{}
	for what, n := range r {
		if n -= before[what]; n > 0 {
			rest[what] = n
		}
	}
	return rest
}

// writes counts what changes something, without events and leases.
func (r requests) writes() int {
	sum := 0
	for what, n := range r {
		if slices.Contains([]string{"create", "update", "patch", "delete"}, what.verb) && what.resource != "leases" && what.resource != "events" {
			sum += n
		}
	}
	return sum
}

func (r requests) each(clusters int) string {
	return r.list(func(n int) string { return fmt.Sprintf("%.1f", float64(n)/float64(clusters)) })
}

// String lists the requests.
func (r requests) String() string { return r.list(func(n int) string { return fmt.Sprint(n) }) }

func (r requests) list(number func(int) string) string {
	lines := make([]string, 0, len(r))
	for what, n := range r {
		lines = append(lines, number(n)+" "+what.verb+" "+what.resource)
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
