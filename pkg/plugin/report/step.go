// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Steps returns what to do. What the controller waits for comes last, unless a step or, beside the
// steps of the API server, a fault says the same. The API server writes commands for users of kubectl alone; those
// that the plugin has a command for become that command.
func Steps(s *Status) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	if s.Health != nil {
		list = slices.Clone(s.Health.NextSteps)
	}
	for i := range list {
		list[i].Command = pluginCommand(list[i].Command, s.Namespace, s.Name)
	}
	b := s.Cluster.Status.BlockedBy
	if b == nil || b.Unblock == "" {
		return list
	}
	said := slices.ContainsFunc(list, func(n v1beta2.NextStep) bool { return strings.Contains(n.Why, b.Unblock) }) ||
		len(list) > 0 && slices.ContainsFunc(Faults(s.Cluster), func(c v1beta2.ClusterCondition) bool { return strings.Contains(c.Message, b.Unblock) })
	if said {
		return list
	}
	return append(list, v1beta2.NextStep{Why: b.Unblock})
}

var (
	// readSnapshot is a request that saves a snapshot to a file.
	readSnapshot = regexp.MustCompile(`^kubectl get --raw '([^']+)/proxy/snapshot(\?[^']*)?' > (\S+)$`)
	// sendAction is a request that starts an action.
	sendAction = regexp.MustCompile(`^echo '([^']*)' \| kubectl create --raw '([^']+)/(\w+)(\?[^']*)?' -f -$`)
)

// actions maps subresources to commands of the plugin.
var actions = map[string]string{
	"recover": "recover", "restore": "restore", "defrag": "defrag", "restart": "restart", "replace": "replace", "moveleader": "move-leader", "backup": "backup",
}

// pluginCommand returns the command of the plugin for a command of kubectl. A command that the
// plugin does not have stays as it is.
func pluginCommand(command, namespace, name string) string {
	path := "/apis/" + v1beta2.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/etcdclusters/" + name
	if m := readSnapshot.FindStringSubmatch(command); m != nil && m[1] == path {
		words := []string{"kubectl etcd snapshot save", name, m[3]}
		if member := parameter(m[2], "member"); member != "" {
			words = append(words, "--member", member)
		}
		return strings.Join(append(words, "-n", namespace), " ")
	}
	m := sendAction.FindStringSubmatch(command)
	if m == nil || m[2] != path || actions[m[3]] == "" {
		return command
	}
	var body v1beta2.EtcdClusterOperation
	decoder := json.NewDecoder(strings.NewReader(m[1]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return command // the body is of another kind
	}
	words := append([]string{"kubectl etcd", actions[m[3]], name}, body.Spec.Members...)
	words = append(words, "-n", namespace)
	if parameter(m[4], "dryRun") != "" {
		words = append(words, "--dry-run")
	}
	return strings.Join(words, " ")
}

// parameter returns a parameter of the query of a URL.
func parameter(query, name string) string {
	values, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
	if err != nil {
		return ""
	}
	return values.Get(name)
}
