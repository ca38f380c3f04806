// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// fillingLimit is how long a recovery member may be filled before the steps mention it.
	fillingLimit = 10 * time.Minute
	// expiresSoon is how long before its end a certificate is mentioned.
	expiresSoon = 14 * 24 * time.Hour

	saveFirst = "first save what each survivor has"
)

// steps says what to do, the most urgent first.
func (f *findings) steps(h *v1beta2.EtcdClusterHealth) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	switch h.Verdict {
	case v1beta2.VerdictHibernated:
		list = append(list, f.wakeStep())
	case v1beta2.VerdictCreating:
		list = append(list, v1beta2.NextStep{Why: "see what it waits for", Command: f.kubectl("describe etcd " + f.Cluster.Name)})
	case v1beta2.VerdictUnreachable:
		list = append(list, f.unreachableSteps()...)
	case v1beta2.VerdictSplitBrain, v1beta2.VerdictDisagreement:
		list = append(list, v1beta2.NextStep{Why: "see what each member says", Command: f.get("members")})
		if h.Verdict == v1beta2.VerdictSplitBrain {
			list = append(list, f.saveEach("before anything else, save what each member has")...)
		}
	case v1beta2.VerdictQuorumLost:
		list = append(list, f.quorumSteps()...)
	case v1beta2.VerdictDegraded, v1beta2.VerdictHealthy:
	}
	list = append(list, f.spaceSteps()...)
	list = append(list, f.memberSteps()...)
	list = append(list, f.drainSteps()...)
	if h.Verdict == v1beta2.VerdictDegraded && h.Tolerance != nil && *h.Tolerance == 0 && h.DesiredSize > 2 {
		list = append(list, v1beta2.NextStep{Why: "one more failure loses the quorum: save a copy outside of the cluster", Command: f.saveCommand("")})
	}
	for _, step := range f.controllerSteps(h) {
		if b := f.Cluster.Status.BlockedBy; b == nil || !slices.ContainsFunc(list, func(s v1beta2.NextStep) bool { return strings.Contains(s.Why, b.Message) }) {
			list = append(list, step)
		}
	}
	return append(list, f.certificateSteps(h)...)
}

// wakeStep names the size of before, as kubectl etcd wake does: each member keeps its PVC. Fewer would wake all members and
// then remove some of them.
func (f *findings) wakeStep() v1beta2.NextStep {
	size := 0
	for _, m := range f.members {
		if m.Claim != nil && !m.Claim.Terminating {
			size++
		}
	}
	scale := "scale etcd " + f.Cluster.Name + " --replicas="
	if size == 0 {
		return v1beta2.NextStep{Why: "wake it: replace SIZE with the size from before the hibernation, which no PVC tells", Command: f.kubectl(scale + "SIZE")}
	}
	return v1beta2.NextStep{Why: "wake it with as many members as have a PVC", Command: f.kubectl(scale + strconv.Itoa(size))}
}

// unreachableSteps are for a cluster whose pods run and whose members do not respond.
func (f *findings) unreachableSteps() []v1beta2.NextStep {
	var granted interface{ Remedy() string }
	if errors.As(f.CertificateErr, &granted) {
		return []v1beta2.NextStep{{Why: "let the API server read the client certificate of the cluster", Command: granted.Remedy()}}
	}
	return []v1beta2.NextStep{{
		Why:     "the network between the API server and the members may be the cause, such as a NetworkPolicy",
		Command: f.kubectl("get networkpolicies,pods -o wide"),
	}}
}

// quorumSteps are for a cluster without quorum.
func (f *findings) quorumSteps() []v1beta2.NextStep {
	loss := f.facts().QuorumLoss()
	if f.listsUnmanaged() {
		return append(f.saveEach(saveFirst), f.bringBackOthers(loss))
	}
	if unconfirmed := f.unconfirmed(); unconfirmed != "" && (loss.Remedy == diagnosis.RemedyRecover || loss.Remedy == diagnosis.RemedyReadVolume) {
		return append(f.saveEach(saveFirst), v1beta2.NextStep{Why: loss.Message + unconfirmed, Command: f.kubectl("get nodes,pods,pvc -o wide")})
	}
	switch loss.Remedy {
	case diagnosis.RemedyRecover:
		return append(f.saveEach(saveFirst), v1beta2.NextStep{
			Why:     loss.Message + " See what a recovery would do, then send the request without the dry run.",
			Command: f.post("recover?dryRun=All"),
		})
	case diagnosis.RemedyReadVolume:
		return append([]v1beta2.NextStep{{
			Why:     loss.Message + " " + diagnosis.ReadVolume + " See what it would do, then send the request without the dry run.",
			Command: f.postBody("recover?dryRun=All", f.volumeRequest()),
		}}, f.restoreSteps("If no PVC can be read:")...)
	case diagnosis.RemedyBringBack:
		return append([]v1beta2.NextStep{{
			Why:     loss.Message + " " + diagnosis.KeepPVCs,
			Command: f.kubectl("get pods,pvc,nodes,events -o wide"),
		}}, f.restoreSteps("If it is permanently lost:")...)
	case diagnosis.RemedyRestore:
		return f.restoreSteps(loss.Message)
	case diagnosis.RemedyWaitForMembers, diagnosis.RemedyCheckNetwork, diagnosis.RemedyGrantAccess, diagnosis.RemedyShrinkList:
	}
	return []v1beta2.NextStep{{
		Why:     fmt.Sprintf("the cluster resumes untouched as soon as %d of its voters serve; do not delete pods or PVCs", diagnosis.Quorum(len(f.voters))),
		Command: f.kubectl("get pods,pvc,events -o wide"),
	}}
}

// bringBackOthers is for a cluster with members that another program runs. Nothing proves that those are lost, so recoveries
// and restores in place are rejected.
func (f *findings) bringBackOthers(loss diagnosis.Loss) v1beta2.NextStep {
	return v1beta2.NextStep{
		Why: loss.Message + " The cluster resumes untouched as soon as a quorum serves: bring back its members, and those that another program runs. " +
			"If they are permanently lost, restore a backup into a new EtcdCluster with an EtcdRestore that has spec.clusterTemplate",
		Command: f.kubectl("get pods,pvc,nodes,events -o wide"),
	}
}

// unconfirmed says what a recovery waits for that the API does not accept yet; empty if it does. The API
// decides by the status, which the controller writes. It knows nodes and other members' views, and this
// probe may be ahead of it, too.
func (f *findings) unconfirmed() string {
	const wait = " The API accepts a recovery when the controller has confirmed the loss."
	i := slices.IndexFunc(f.Cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == v1beta2.ClusterConditionQuorumLost })
	if i < 0 {
		return wait
	}
	lost := f.Cluster.Status.Conditions[i]
	_, err := diagnosis.FromStatus(f.Cluster, resources.RevisionGoesBack).PlanRecovery("")
	if lost.Status == corev1.ConditionTrue && !errors.Is(err, diagnosis.ErrNoSource) {
		return ""
	}
	return wait + " It reports: " + lost.Message
}

// volumeRequest is the body of a request for a recovery from a PVC. It names the member only if
// there are several, as a place for the choice.
func (f *findings) volumeRequest() string {
	if sources := f.facts().VolumeSources(); len(sources) > 1 {
		return `{"spec":{"member":"` + sources[0].Name + `"}}`
	}
	return "{}"
}

// restoreSteps are for a cluster that has only backups left. A restore changes nothing before it
// has verified its backup.
func (f *findings) restoreSteps(why string) []v1beta2.NextStep {
	last := f.Cluster.Status.LastBackup
	if resources.Restorable(last, true) != nil {
		return []v1beta2.NextStep{{Why: why + " Restore a backup, if there is one. The status of the cluster names none; see the EtcdBackups.", Command: f.kubectl("get etcdbackups")}}
	}
	body := "{}"
	if last.Encrypted {
		why += " The last backup is encrypted: replace IDENTITIES with the name of the Secret with the identities."
		body = `{"spec":{"decryption":{"ageIdentitiesSecret":"IDENTITIES"}}}`
	}
	return []v1beta2.NextStep{
		{
			Why: fmt.Sprintf("%s Restore the last backup, EtcdBackup %s of %s. See the plan, then send the request without dryRun.",
				why, last.Name, last.Time.UTC().Format(time.RFC3339)),
			Command: f.postBody("restore?dryRun=All", body),
		},
		{Why: "or restore another backup: see the EtcdBackups", Command: f.kubectl("get etcdbackups")},
	}
}

// saveEach saves the data of each member that responds.
func (f *findings) saveEach(why string) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	for _, a := range f.responded() {
		list = append(list, v1beta2.NextStep{Why: why, Command: f.saveCommand(a.Name)})
	}
	return list
}

func (f *findings) saveCommand(member string) string {
	path, file := "proxy/snapshot", f.Cluster.Name
	if member != "" {
		path, file = path+"?member="+member, member
	}
	return f.get(path) + " > " + file + ".db"
}

// isBeingFilled is true for a recovery member that runs and does not serve yet: the controller
// waits for it. After fillingLimit its log is worth a look.
func (f *findings) isBeingFilled(m *v1beta2.MemberHealth) bool {
	r := f.Cluster.Status.Recovery
	return r.IsInProgress() && f.ProbedAt.Sub(r.RequestedAt.Time) < fillingLimit && m.Name == r.RecoveryMember && m.Pod != nil && m.Pod.Restarts == 0 && isRunning(f.pod(m.Name))
}

// memberSteps are about members that do not serve.
func (f *findings) memberSteps() []v1beta2.NextStep {
	var list []v1beta2.NextStep
	for _, m := range f.members {
		if m.Responded && f.onlyResponds(m.Name) && m.Role != v1beta2.MemberRoleLearner {
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " responds and does not serve: its disk may not take writes, so see the slow calls in its log, and the disk of its node",
				Command: f.kubectl("logs " + m.Name + " -c etcd --tail=50"),
			})
			list = append(list, f.replaceSteps(m, "if the disk of member "+m.Name+" does not come back")...)
		}
		if m.Responded || m.ID == "" && m.Pod == nil || f.isBeingFilled(m) {
			continue
		}
		switch pod := f.pod(m.Name); {
		case pod == nil:
			continue // the controller acts on it
		case !isRunning(pod) && m.Pod.Restarts > 0:
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " restarts again and again: see its last log",
				Command: f.kubectl("logs " + m.Name + " -c etcd --previous --tail=50"),
			})
			list = append(list, f.replaceSteps(m, "if the log says that the data of member "+m.Name+" is damaged or missing")...)
		case !isRunning(pod):
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " does not run: see what Kubernetes waits for",
				Command: f.kubectl("describe pod " + m.Name),
			})
		default:
			list = append(list, v1beta2.NextStep{
				Why:     "etcd of member " + m.Name + " runs and does not respond: see its log, and whether its node is healthy",
				Command: f.kubectl("logs " + m.Name + " -c etcd --tail=50"),
			})
		}
	}
	return list
}

// replaceSteps says how to replace a member that does not come back by itself, if the other
// members are a quorum without it: then they have all of its data.
func (f *findings) replaceSteps(m *v1beta2.MemberHealth, when string) []v1beta2.NextStep {
	if f.Confirmed == nil || len(f.serving) < diagnosis.Quorum(len(f.voters)) {
		return nil
	}
	return []v1beta2.NextStep{{
		Why:     when + ", have another member replace it; the other members have all data",
		Command: f.postBody("replace", `{"spec":{"members":["`+m.Name+`"]}}`),
	}}
}

// controllerSteps say why the controller does not repair the cluster.
func (f *findings) controllerSteps(h *v1beta2.EtcdClusterHealth) []v1beta2.NextStep {
	if h.Verdict == v1beta2.VerdictHealthy || h.Verdict == v1beta2.VerdictHibernated {
		return nil
	}
	if f.Cluster.Spec.Paused {
		return []v1beta2.NextStep{{
			Why:     "spec.paused is true, so the controller does not repair the cluster",
			Command: f.kubectl(`patch etcd ` + f.Cluster.Name + ` --type=merge -p '{"spec":{"paused":false}}'`),
		}}
	}
	if b := f.Cluster.Status.BlockedBy; b != nil && b.Unblock != "" {
		return []v1beta2.NextStep{{Why: "the controller waits: " + strings.TrimSuffix(b.Message, ".") + ". Remedy: " + b.Unblock}}
	}
	return nil
}

// certificateSteps are about certificates that end soon.
func (f *findings) certificateSteps(h *v1beta2.EtcdClusterHealth) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	soon := f.ProbedAt.Add(expiresSoon)
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

func (f *findings) kubectl(args string) string {
	return "kubectl -n " + f.Cluster.Namespace + " " + args
}

func (f *findings) path(subresource string) string {
	return fmt.Sprintf("'/apis/%s/namespaces/%s/etcdclusters/%s/%s'",
		v1beta2.SchemeGroupVersion, f.Cluster.Namespace, f.Cluster.Name, subresource)
}

func (f *findings) get(subresource string) string { return "kubectl get --raw " + f.path(subresource) }

func (f *findings) post(subresource string) string { return f.postBody(subresource, "{}") }

func (f *findings) postBody(subresource, body string) string {
	return "echo '" + body + "' | kubectl create --raw " + f.path(subresource) + " -f -"
}
