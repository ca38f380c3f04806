// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// fullFrom is the share of the quota in percent from which it should be raised.
	fullFrom = 80
	// wasteFrom is the share of the quota in percent from which unused space counts.
	wasteFrom = 50
	// expiresSoon is how long before its end a certificate is worth a word.
	expiresSoon = 14 * 24 * time.Hour
)

// steps says what to do, the most urgent first.
func (f *facts) steps(h *v1beta2.EtcdClusterHealth) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	switch h.Verdict {
	case v1beta2.VerdictHibernated:
		list = append(list, v1beta2.NextStep{Why: "wake it", Command: f.kubectl("scale etcd " + f.Cluster.Name + " --replicas=3")})
	case v1beta2.VerdictCreating:
		list = append(list, v1beta2.NextStep{Why: "see what it waits for", Command: f.kubectl("describe etcd " + f.Cluster.Name)})
	case v1beta2.VerdictUnreachable:
		list = append(list, f.unreachableSteps()...)
	case v1beta2.VerdictSplitBrain, v1beta2.VerdictDisagreement:
		list = append(list, v1beta2.NextStep{Why: "see who says what", Command: f.get("members")})
		if h.Verdict == v1beta2.VerdictSplitBrain {
			list = append(list, f.saveEach("before anything else, save what each one has")...)
		}
	case v1beta2.VerdictQuorumLost:
		list = append(list, f.quorumSteps()...)
	case v1beta2.VerdictDegraded, v1beta2.VerdictHealthy:
	}
	list = append(list, f.spaceSteps()...)
	list = append(list, f.memberSteps()...)
	if h.Verdict == v1beta2.VerdictDegraded && h.Tolerance != nil && *h.Tolerance == 0 && h.Declared > 2 {
		list = append(list, v1beta2.NextStep{Why: "one more failure loses the quorum: have a copy outside of the cluster", Command: f.saveCommand("")})
	}
	list = append(list, f.controllerSteps(h)...)
	return append(list, f.certificateSteps(h)...)
}

// unreachableSteps are for a cluster whose pods run and whose members do not respond.
func (f *facts) unreachableSteps() []v1beta2.NextStep {
	var granted interface{ Remedy() string }
	if errors.As(f.CertificateErr, &granted) {
		return []v1beta2.NextStep{{Why: "let the API server read the client certificate of the cluster", Command: granted.Remedy()}}
	}
	return []v1beta2.NextStep{{
		Why:     "something between the API server and the members may be in the way, such as a network policy",
		Command: f.kubectl("get networkpolicies,pods -o wide"),
	}}
}

// quorumSteps are for a cluster without quorum.
func (f *facts) quorumSteps() []v1beta2.NextStep {
	gone := 0
	for _, m := range f.voters {
		if m.Claim == nil && (m.Pod == nil || m.Pod.Terminating || m.Pod.Phase == corev1.PodFailed || m.Pod.Phase == corev1.PodSucceeded) {
			gone++
		}
	}
	need := quorum(len(f.voters))
	if len(f.voters)-gone >= need && len(f.voters) > 0 {
		return []v1beta2.NextStep{{
			Why:     fmt.Sprintf("the cluster goes on untouched as soon as %d of its voters serve; do not delete pods or volumes", need),
			Command: f.kubectl("get pods,pvc,events -o wide"),
		}}
	}
	list := f.saveEach("first save what a survivor has")
	why := fmt.Sprintf("%d of %s are gone with their data, so the quorum cannot come back by itself", gone, count(len(f.voters), "voter"))
	switch {
	case len(f.answered()) == 0 && gone == len(f.voters):
		return append(list, f.restoreSteps(why+" and nobody is left to recover from")...)
	case len(f.answered()) == 0:
		list = append(list, v1beta2.NextStep{
			Why:     why + "; nobody answers, but somebody's pod or volume is left: with that one back a recovery loses less than a backup that is restored",
			Command: f.kubectl("get pods,pvc,nodes,events -o wide"),
		})
		return append(list, f.restoreSteps("if what is left is lost for good")...)
	}
	return append(list, v1beta2.NextStep{Why: why + ": see what a recovery would do, then do it without dryRun", Command: f.post("recover?dryRun=All")})
}

// restoreSteps are for a cluster of which only backups are left. A restore touches nothing
// before it has found its backup good.
func (f *facts) restoreSteps(why string) []v1beta2.NextStep {
	last := f.Cluster.Status.LastBackup
	if resources.Restorable(last) != nil {
		return []v1beta2.NextStep{{Why: why + ": restore a backup; these exist", Command: f.kubectl("get etcdbackups")}}
	}
	return []v1beta2.NextStep{
		{
			Why: fmt.Sprintf("%s: restore the last backup, EtcdBackup %s of %s; see which one it would be, then do it without dryRun",
				why, last.Name, last.Time.UTC().Format(time.RFC3339)),
			Command: f.post("restore?dryRun=All"),
		},
		{Why: "or another backup; these exist", Command: f.kubectl("get etcdbackups")},
	}
}

// saveEach saves what the members have that answer.
func (f *facts) saveEach(why string) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	for _, a := range f.answered() {
		list = append(list, v1beta2.NextStep{Why: why, Command: f.saveCommand(a.Name)})
	}
	return list
}

func (f *facts) saveCommand(member string) string {
	path, file := "proxy/snapshot", f.Cluster.Name
	if member != "" {
		path, file = path+"?member="+member, member
	}
	return f.get(path) + " > " + file + ".db"
}

// spaceSteps are about the size of the database.
func (f *facts) spaceSteps() []v1beta2.NextStep {
	var list []v1beta2.NextStep
	if slices.ContainsFunc(f.alarms(), func(a string) bool { return strings.Contains(a, string(etcd.AlarmCorrupt)) }) {
		list = append(list, v1beta2.NextStep{Why: "a member's data differs from the others': save what each has before it is replaced", Command: f.get("members")})
	}
	noSpace := slices.ContainsFunc(f.alarms(), func(a string) bool { return strings.Contains(a, string(etcd.AlarmNoSpace)) })
	full, waste := f.space()
	if !noSpace && !full && !waste {
		return list
	}
	if noSpace {
		list = append(list, v1beta2.NextStep{Why: "etcd refuses writes: the database has reached its quota"})
	}
	if full {
		list = append(list, v1beta2.NextStep{
			Why:     "most of the database is in use: delete keys and compact, or raise the quota (up to 8Gi is usual)",
			Command: f.kubectl(`patch etcd ` + f.Cluster.Name + ` --type=merge -p '{"spec":{"etcd":{"quotaBackendBytes":"8Gi"}}}'`),
		})
	}
	if waste || noSpace {
		list = append(list, v1beta2.NextStep{
			Why:     "give unused space back, one member at a time; the alarm is taken back when the database is below its quota",
			Command: f.post("defrag"),
		})
	}
	return list
}

// space says whether a database is nearly full, and whether much of one is unused.
func (f *facts) space() (full, waste bool) {
	for _, m := range f.members {
		if m.Quota == 0 || m.DBSize == 0 {
			continue
		}
		inUse := m.DBSizeInUse
		if inUse == 0 {
			inUse = m.DBSize // before 3.4 it is not told, and may be all
		}
		full = full || 100*inUse >= fullFrom*m.Quota
		waste = waste || (100*m.DBSize >= wasteFrom*m.Quota && 2*inUse < m.DBSize)
	}
	return full, waste
}

// memberSteps are about members that do not serve.
func (f *facts) memberSteps() []v1beta2.NextStep {
	var list []v1beta2.NextStep
	for _, m := range f.members {
		if m.Answered || m.ID == "" && m.Pod == nil {
			continue
		}
		switch pod := f.pod(m.Name); {
		case pod == nil:
			continue // what is to be done about it is the controller's
		case !runs(pod) && m.Pod.Restarts > 0:
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " ends again and again: see what it said last",
				Command: f.kubectl("logs " + m.Name + " -c etcd --previous --tail=50"),
			})
			list = append(list, f.replaceSteps(m)...)
		case !runs(pod):
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " does not run: see what Kubernetes waits for",
				Command: f.kubectl("describe pod " + m.Name),
			})
		default:
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " runs and does not answer: see what it says, and whether its node is well",
				Command: f.kubectl("logs " + m.Name + " -c etcd --tail=50"),
			})
		}
	}
	return list
}

// replaceSteps says how to have another member take the place of one whose data is
// damaged, if the others are a quorum without it: then they have all of its data.
func (f *facts) replaceSteps(m *v1beta2.MemberHealth) []v1beta2.NextStep {
	if f.Confirmed == nil || len(f.serving) < quorum(len(f.voters)) {
		return nil
	}
	what := "pod/" + m.Name
	if m.Claim != nil {
		what = "pvc/" + m.Name + " " + what
	}
	return []v1beta2.NextStep{{
		Why:     "if it says that the data of member " + m.Name + " is damaged or gone, have another member take its place; the others have all of it",
		Command: f.kubectl("delete --wait=false " + what),
	}}
}

// controllerSteps are about why nobody repairs the cluster.
func (f *facts) controllerSteps(h *v1beta2.EtcdClusterHealth) []v1beta2.NextStep {
	if h.Verdict == v1beta2.VerdictHealthy || h.Verdict == v1beta2.VerdictHibernated {
		return nil
	}
	if f.Cluster.Spec.Paused {
		return []v1beta2.NextStep{{
			Why:     "spec.paused is true, so the controller repairs nothing",
			Command: f.kubectl(`patch etcd ` + f.Cluster.Name + ` --type=merge -p '{"spec":{"paused":false}}'`),
		}}
	}
	if b := f.Cluster.Status.BlockedBy; b != nil && b.Unblock != "" {
		return []v1beta2.NextStep{{Why: "the controller waits (" + b.Message + "); what would let it go on: " + b.Unblock}}
	}
	return nil
}

// certificateSteps are about certificates that end soon.
func (f *facts) certificateSteps(h *v1beta2.EtcdClusterHealth) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	soon := f.AskedAt.Add(expiresSoon)
	if at := h.ClientCertificateExpiry; at != nil && at.Time.Before(soon) {
		list = append(list, v1beta2.NextStep{Why: "the certificate of the controller and the API server ends at " + at.UTC().Format(time.RFC3339)})
	}
	for _, m := range f.members {
		if at := m.CertificateExpiry; at != nil && at.Time.Before(soon) {
			list = append(list, v1beta2.NextStep{
				Why: "the certificate of member " + m.Name + " ends at " + at.UTC().Format(time.RFC3339) + ": renew the secret, it is read without a restart",
			})
		}
	}
	return list
}

func (f *facts) kubectl(args string) string {
	return "kubectl -n " + f.Cluster.Namespace + " " + args
}

func (f *facts) path(subresource string) string {
	return fmt.Sprintf("'/apis/%s/namespaces/%s/etcdclusters/%s/%s'",
		v1beta2.SchemeGroupVersion, f.Cluster.Namespace, f.Cluster.Name, subresource)
}

func (f *facts) get(subresource string) string { return "kubectl get --raw " + f.path(subresource) }

func (f *facts) post(subresource string) string {
	return "echo '{}' | kubectl create --raw " + f.path(subresource) + " -f -"
}
