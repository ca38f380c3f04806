// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Right is the right that a request needs.
type Right struct {
	Verb string
	// Resource with its subresource, such as etcdclusters/health.
	Resource  string
	Namespace string
}

// Roles that give the rights which the plugin uses. Those that begin with "etcd-operator:" are
// in artifacts/install/40-user-roles.yaml, the others are those of Kubernetes.
const (
	roleView     = "etcd-operator:view"
	roleEdit     = "etcd-operator:edit"
	roleRecover  = "etcd-operator:recover"
	roleRestore  = "etcd-operator:restore"
	roleSnapshot = "etcd-operator:snapshot"
)

// role is a ClusterRole, and the role of a namespace that includes it.
type role struct{ name, includedIn string }

// broad are roles that give much more than one right, and what a holder of each may do beyond that. A user that may only
// make backups gets a Role of that right instead.
var broad = map[string]string{
	roleEdit: "change and delete clusters, backups and restores",
	"edit":   "change and delete most objects of the namespace",
}

// roles maps a verb and a resource to the least ClusterRole that gives the right.
var roles = map[string]role{
	"get etcdclusters":               {roleView, "view"},
	"list etcdclusters":              {roleView, "view"},
	"get etcdclusters/health":        {roleView, "view"},
	"get etcdclusters/members":       {roleView, "view"},
	"get etcdbackups":                {roleView, "view"},
	"get etcdrestores":               {roleView, "view"},
	"patch etcdclusters":             {roleEdit, "edit"},
	"get etcdclusters/scale":         {roleView, "view"},
	"update etcdclusters/scale":      {roleEdit, "edit"},
	"create etcdclusters/backup":     {roleEdit, "edit"},
	"create etcdclusters/restore":    {roleRestore, ""},
	"create etcdclusters/restart":    {roleEdit, "edit"},
	"create etcdclusters/defrag":     {roleEdit, "edit"},
	"create etcdclusters/replace":    {roleEdit, "edit"},
	"create etcdclusters/moveleader": {roleEdit, "edit"},
	"create etcdbackups":             {roleEdit, "edit"},
	"create etcdrestores":            {roleEdit, "edit"},
	"patch etcdbackups":              {roleEdit, "edit"},
	"create etcdclusters/recover":    {roleRecover, "admin"},
	"get etcdclusters/proxy":         {roleSnapshot, ""},
	"list etcdbackups":               {roleView, "view"},
	"list etcdrestores":              {roleView, "view"},
	"list events":                    {"view", ""},
	"list pods":                      {"view", ""},
	"list persistentvolumeclaims":    {"view", ""},
	"get persistentvolumeclaims":     {"view", ""},
	"list services":                  {"view", ""},
	"list poddisruptionbudgets":      {"view", ""},
	"list deployments":               {"view", ""},
	"get pods":                       {"view", ""},
	"get pods/log":                   {"view", ""},
	"create pods/exec":               {"edit", ""},
	"create jobs":                    {"edit", ""},
	"delete jobs":                    {"edit", ""},
	"get jobs":                       {"view", ""},
}

// With returns err with the right that the request needs, if the user lacks it, and with what
// to do if the API does not respond. Other errors stay as they are.
func With(err error, right Right) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && !isLimit(message(err)):
		return &explained{forbidden(err, right), err}
	case apierrors.IsUnauthorized(err):
		return &explained{"Kubernetes does not accept the credentials of this kubeconfig; log in again, or choose another context with --context", err}
	default:
		return err
	}
}

// limits are words of what rejects with the same status as a missing right, and what no role lifts.
var limits = []string{"the limit for one namespace", "which all namespaces share", "exceeded quota", "ValidatingAdmissionPolicy", "admission webhook"}

func isLimit(detail string) bool {
	return slices.ContainsFunc(limits, func(words string) bool { return strings.Contains(detail, words) })
}

// explained is an error with a text of its own.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }

func (e *explained) Unwrap() error { return e.err }

func forbidden(err error, right Right) string {
	where := "in namespace " + right.Namespace
	if right.Namespace == "" {
		where = "in all namespaces"
	}
	text := fmt.Sprintf("the right to %s %s %s is missing", right.Verb, right.Resource, where)
	if detail := message(err); detail != "" {
		text += ": " + detail
	}
	known, ok := roles[right.Verb+" "+right.Resource]
	if !ok {
		return text + "\nAsk an administrator for the right"
	}
	if may, found := broad[known.name]; found {
		return text + ". An administrator types, for this right alone:\n" + grant(right) + "\nClusterRole " + known.name + " gives the right, and lets its holder " + may
	}
	text += "\nClusterRole " + known.name + " gives the right"
	if known.includedIn != "" {
		text += ", and so does the role " + known.includedIn + " of a namespace"
	}
	return text + ". An administrator types:\n  " + bind(known.name, right.Namespace)
}

// groups are the API groups of resources outside the core group, as kubectl writes them.
var groups = map[string]string{
	"etcdclusters": ".etcd.database.coreos.com", "etcdbackups": ".etcd.database.coreos.com", "etcdrestores": ".etcd.database.coreos.com",
	"jobs": ".batch",
}

// grant returns the commands that give a user one right.
func grant(right Right) string {
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	name := strings.TrimSuffix(right.Verb+"-"+resource+"-"+subresource, "-")
	where, kind := "-n "+right.Namespace+" ", ""
	if right.Namespace == "" {
		where, kind = "", "cluster"
	}
	return fmt.Sprintf("  kubectl %screate %srole %s --verb=%s --resource=%s\n  kubectl %screate %srolebinding %s --%srole=%s --user=USER",
		where, kind, name, right.Verb, strings.TrimSuffix(resource+groups[resource]+"/"+subresource, "/"), where, kind, name, kind, name)
}

// bind returns the command that gives a user a role.
func bind(name, namespace string) string {
	binding := strings.ReplaceAll(name, ":", "-")
	if namespace == "" {
		return fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s --user=USER", binding, name)
	}
	return fmt.Sprintf("kubectl -n %s create rolebinding %s --clusterrole=%s --user=USER", namespace, binding, name)
}

// message returns what the API server says, without the prefix of the error.
func message(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Message
}

// Explain returns what the program prints about an error: fact, cause and remedy.
func Explain(err error) string {
	var known *explained
	var text *coded
	switch {
	case errors.As(err, &known), errors.As(err, &text):
		return err.Error()
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		return "the time limit of the request has passed: " + err.Error()
	case apierrors.IsConflict(err):
		return conflict(err)
	case IsMissingAPI(err), apierrors.IsServiceUnavailable(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The kube-apiserver says so in plain text. A status is from the API itself, such as of members that do not respond.
		return err.Error() + "\nThe API of the operator may not be installed, or not be available. See the cause: kubectl etcd check api"
	case isNetwork(err):
		return err.Error() + "\nThe kube-apiserver does not respond. Check --context and --kubeconfig"
	default:
		return err.Error()
	}
}

// conflict returns what the API server says, without the words that Kubernetes puts in front of
// each conflict.
func conflict(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err.Error()
	}
	d := status.Status().Details
	resource := schema.GroupResource{Group: d.Group, Resource: d.Kind}
	return strings.Replace(err.Error(), fmt.Sprintf("Operation cannot be fulfilled on %s %q: ", resource.String(), d.Name), "", 1)
}

func isNetwork(err error) bool {
	var operation *net.OpError
	var lookup *net.DNSError
	return errors.As(err, &operation) || errors.As(err, &lookup)
}

// IsMissingAPI is true if the kube-apiserver does not know the group. It is not true if an
// object does not exist.
func IsMissingAPI(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details != nil && hasCause(details.Causes, metav1.CauseTypeUnexpectedServerResponse)
}

func hasCause(causes []metav1.StatusCause, kind metav1.CauseType) bool {
	for _, c := range causes {
		if c.Type == kind {
			return true
		}
	}
	return false
}

// Roles returns the ClusterRole that gives each right, by verb and resource.
func Roles() map[string]string {
	result := make(map[string]string, len(roles))
	for right, role := range roles {
		result[right] = role.name
	}
	return result
}
