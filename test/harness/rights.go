// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// Right is one verb on one resource, as a rule of a role has it.
type Right struct{ Group, Resource, Verb string }

// String is such as "get pods", or "update jobs.batch/status".
func (r Right) String() string {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		resource += "." + r.Group
	}
	if sub != "" {
		resource += "/" + sub
	}
	return r.Verb + " " + resource
}

// GrantedRights returns the rights of the roles in a manifest, except those in the named roles.
func GrantedRights(manifest []byte, except ...string) (map[Right]bool, error) {
	granted := map[Right]bool{}
	skipped := map[string]bool{}
	for _, name := range except {
		skipped[name] = true
	}
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("read a role: %w", err)
		}
		if skipped[role.Name] {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[Right{group, resource, verb}] = true
					}
				}
			}
		}
	}
	return granted, nil
}

// UsedRights returns what a user did, from the audit log of a kube-apiserver. A line that is being
// written is left out.
func UsedRights(auditLog, user string) (map[Right]bool, error) {
	used := map[Right]bool{}
	err := EachAuditEvent(auditLog, func(event *auditv1.Event) {
		if event.User.Username != user || event.ObjectRef == nil {
			return
		}
		r := Right{event.ObjectRef.APIGroup, event.ObjectRef.Resource, event.Verb}
		if event.ObjectRef.Subresource != "" {
			r.Resource += "/" + event.ObjectRef.Subresource
		}
		used[r] = true
		if r.Verb == "watch" {
			// An informer lists where the kube-apiserver does not send the first state by the watch.
			used[Right{r.Group, r.Resource, "list"}] = true
		}
	})
	return used, err
}

// CompareRights returns what is wrong with rights that are granted. Each of them must be used, or be
// listed, as text, with the code that uses it. What is listed must be granted.
func CompareRights(granted, used map[Right]bool, elsewhere map[string]string) []string {
	var wrong []string
	known := map[string]bool{}
	for r := range granted {
		known[r.String()] = true
		if _, listed := elsewhere[r.String()]; !used[r] && !listed {
			wrong = append(wrong, r.String()+" is granted, and no request uses it")
		}
	}
	for r := range elsewhere {
		if !known[r] {
			wrong = append(wrong, r+" is listed, and no role grants it")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// EachAuditEvent calls do with each event of an audit log. The error of a log that does not exist is
// fs.ErrNotExist.
func EachAuditEvent(auditLog string, do func(*auditv1.Event)) error {
	file, err := os.Open(auditLog)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // a line without an end is being written
			return nil
		case err != nil:
			return fmt.Errorf("read the audit log: %w", err)
		}
		var event auditv1.Event
		if json.Unmarshal(line, &event) == nil {
			do(&event)
		}
	}
}
