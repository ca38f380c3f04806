// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// withClients gives the cluster clients whose Secrets are as declared, listed in the status.
func withClients(names ...string) func(*Observed) {
	return func(o *Observed) {
		for _, name := range names {
			o.Cluster.Spec.Clients = append(o.Cluster.Spec.Clients, v1beta2.ClusterClient{Name: name})
			o.Cluster.Status.Clients = append(o.Cluster.Status.Clients, v1beta2.ClientStatus{SecretName: "s-" + name, Name: name, Ready: corev1.ConditionTrue})
			c := Client{Name: name, UID: "u-" + name, EntriesMatch: true, Certificate: certificates.Certificate{
				Use: v1beta2.CertificateUseClient, Secret: "s-" + name, State: certificates.Usable,
			}}
			if o.CA != nil {
				c.NotBefore, c.NotAfter, c.Renewal = testNow.Add(-time.Hour), testNow.Add(3*time.Hour), testNow.Add(time.Hour)
				c.Issued = certificates.Issued{Signed: true, BundleMatches: true, SANsMatch: true}
			}
			o.Clients = append(o.Clients, c)
		}
	}
}

// client changes what is known of the Secret of a client.
func client(i int, change func(*Client)) func(*Observed) {
	return func(o *Observed) { change(&o.Clients[i]) }
}

// removedClient is client, removed from the spec.
func removedClient(i int) func(*Observed) {
	return client(i, func(c *Client) { c.Name, c.EntriesMatch, c.Issued = "", false, certificates.Issued{} })
}

func inState(s certificates.State) func(*Client) {
	return func(c *Client) {
		if c.State, c.Message = s, "it is wrong"; s == certificates.Missing {
			c.UID, c.EntriesMatch, c.Issued, c.Renewal = "", false, certificates.Issued{}, time.Time{}
		}
	}
}

func unrecorded(o *Observed) { o.Cluster.Status.Clients = nil }

func TestClients(t *testing.T) {
	missing := client(0, inState(certificates.Missing))
	theirs := client(0, inState(certificates.NotOwned))
	due := client(0, func(c *Client) { c.Renewal = testNow })
	edited := client(0, func(c *Client) { c.EntriesMatch = false })
	renamed := client(0, func(c *Client) { c.Issued.SANsMatch = false })
	oldCA := client(0, func(c *Client) { c.Issued.Signed, c.Issued.BundleMatches = false, false })
	onlyBundle := client(0, func(c *Client) { c.Issued.BundleMatches = false })
	overlap := func(o *Observed) { o.CA.Overlap, o.CA.Since = true, testNow.Add(-25*time.Hour) }
	notYetTrusted := func(o *Observed) {
		o.CA.CrossSigned, o.Pods[0].Trust, o.Pods[0].TrustsCA = false, "before", false
	}
	noCA := func(o *Observed) {
		for i := range o.Certificates {
			o.Certificates[i].State, o.Certificates[i].Message = certificates.Missing, "it does not exist"
		}
	}
	checkDecisions(t, []decision{
		{"as declared", 3, "a b c", edits(issuedHere(), withClients("x", "y")), "steady"},
		{"as declared, without TLS", 3, "a b c", edits(withClients("x", "y")), "steady"},
		{"a Secret is created", 3, "a b c", edits(issuedHere(), withClients("x", "y"), missing), "steady: WriteClientSecret x All"},
		{"a Secret is created, without TLS", 3, "a b c", edits(withClients("x"), missing), "steady: WriteClientSecret x Bundle"},
		{"the status lists it first", 3, "a b c", edits(issuedHere(), withClients("x"), missing, unrecorded), "steady"},
		{"a new cluster has a CA first", 3, "", edits(unresponsive, issuedHere(), withClients("x"), noCA, missing), "certificates: IssueCA"},
		{"a member that is replaced holds nothing up", 3, "a b c:nopod", edits(issuedHere(), withClients("x"), missing),
			"replace: WriteClientSecret x All, RemoveMember c Lost"},
		{"a lost quorum holds nothing up", 3, "a b c", edits(issuedHere(), noQuorum, withClients("x"), missing), "quorum: WriteClientSecret x All, wait EtcdUnreachable"},
		{"entries that a user has changed", 3, "a b c", edits(issuedHere(), withClients("x"), edited), "steady: WriteClientSecret x Bundle"},
		{"the same without TLS", 3, "a b c", edits(withClients("x"), edited), "steady: WriteClientSecret x Bundle"},
		{"another common name", 3, "a b c", edits(issuedHere(), withClients("x"), renamed), "steady: WriteClientSecret x All"},
		{"a certificate that a user has damaged", 3, "a b c", edits(issuedHere(), withClients("x"), client(0, inState(certificates.Unusable))), "steady: WriteClientSecret x All"},
		{"it is renewed", 3, "a b c", edits(issuedHere(), withClients("x", "y"), due), "steady: WriteClientSecret x All"},
		{"not known", 3, "a b c", edits(issuedHere(), withClients("x"), client(0, inState(certificates.Unknown))), "steady"},
		{"a Secret that is not owned is left alone, and the others are kept", 3, "a b c",
			edits(issuedHere(), withClients("x", "y"), theirs, client(1, inState(certificates.Missing))), "steady: WriteClientSecret y All"},

		{"a new CA signs at once if it is cross-signed", 3, "a b c", edits(issuedHere(), withClients("x"), overlap, oldCA), "steady: WriteClientSecret x All"},
		{"a new CA that members do not trust yet is distributed first", 3, "a:claim b:claim c:claim", edits(issuedHere(), withClients("x"), overlap, oldCA, notYetTrusted),
			"rollout: WriteClientSecret x Bundle, MoveLeader a>b"},
		{"the old CA is trusted until every client has its certificate", 3, "a:claim b:claim c:claim",
			edits(issuedHere(), withClients("x"), overlap, client(0, inState(certificates.Unknown)), client(0, func(c *Client) { c.Issued.Signed = false })), "steady"},
		{"the old CA is dropped when every client has its certificate", 3, "a b c", edits(issuedHere(), withClients("x"), overlap), "steady: DropOldCAs"},
		{"a Secret that is not owned does not keep it", 3, "a b c", edits(issuedHere(), withClients("x"), overlap, theirs), "steady: DropOldCAs"},
		{"a Secret that does not exist does not keep the old CA", 3, "a b c", edits(issuedHere(), withClients("x"), overlap, missing), "steady: DropOldCAs, WriteClientSecret x All"},
		{"after that the bundle lacks it", 3, "a b c", edits(issuedHere(), withClients("x"), onlyBundle), "steady: WriteClientSecret x All"},

		{"a client is removed", 3, "a b c", edits(issuedHere(), withClients("x", "y"), removedClient(1)), "steady: DeleteClientSecret s-y"},
		{"a client is removed, without TLS", 3, "a b c", edits(withClients("x"), removedClient(0)), "steady: DeleteClientSecret s-x"},
		{"its Secret is not owned", 3, "a b c", edits(issuedHere(), withClients("x"), removedClient(0), theirs), "steady"},
		{"its Secret does not exist", 3, "a b c", edits(issuedHere(), withClients("x"), removedClient(0), missing), "steady"},
		{"its Secret cannot be read", 3, "a b c", edits(issuedHere(), withClients("x"), removedClient(0), client(0, func(c *Client) { c.State, c.UID = certificates.Unknown, "" })), "steady"},
		{"hibernated: nothing is written", 0, "", edits(issuedHere(), withClients("x", "y"), missing), "hibernate"},
		{"hibernated: it is deleted", 0, "", edits(issuedHere(), withClients("x", "y"), removedClient(1)), "hibernate: DeleteClientSecret s-y"},
		{"paused: nothing is written or deleted", 3, "a b c", edits(issuedHere(), withClients("x", "y", "z"), missing, removedClient(1), client(2, func(c *Client) { c.EntriesMatch = false }), pausedSpec), "paused"},
		{"paused, without TLS", 3, "a b c", edits(withClients("x", "y"), missing, removedClient(1), pausedSpec), "paused"},
		{"paused: what runs out is renewed", 3, "a b c", edits(issuedHere(), withClients("x"), due, pausedSpec), "paused: WriteClientSecret x All"},
		{"deleted: garbage collection takes them", 3, "a b c", edits(issuedHere(), withClients("x", "y"), missing, removedClient(1), deleting), "deleting: FinishDeletion"},
	})
}

// TestClientsInStatus: the status says what is true of each Secret, and names the first one
// as the binding while it is as declared.
func TestClientsInStatus(t *testing.T) {
	type want struct {
		ready, condition corev1.ConditionStatus
		reason, binding  string
	}
	for name, test := range map[string]struct {
		change func(*Observed)
		want   want
	}{
		"as declared":     {func(*Observed) {}, want{corev1.ConditionTrue, corev1.ConditionTrue, "AsDeclared", "s-x"}},
		"due for renewal": {client(0, func(c *Client) { c.Renewal = testNow }), want{corev1.ConditionTrue, corev1.ConditionTrue, "AsDeclared", "s-x"}},
		"of the CA before": {client(0, func(c *Client) { c.Issued.Signed, c.Issued.BundleMatches = false, false }),
			want{corev1.ConditionTrue, corev1.ConditionTrue, "AsDeclared", "s-x"}},
		"missing":          {client(0, inState(certificates.Missing)), want{corev1.ConditionFalse, corev1.ConditionFalse, "Issuing", ""}},
		"another name":     {client(0, func(c *Client) { c.Issued.SANsMatch = false }), want{corev1.ConditionFalse, corev1.ConditionFalse, "Issuing", ""}},
		"not owned":        {client(0, inState(certificates.NotOwned)), want{corev1.ConditionFalse, corev1.ConditionFalse, "NameConflict", ""}},
		"second not owned": {client(1, inState(certificates.NotOwned)), want{corev1.ConditionTrue, corev1.ConditionFalse, "NameConflict", "s-x"}},
		"not known":        {client(0, inState(certificates.Unknown)), want{corev1.ConditionUnknown, corev1.ConditionUnknown, "SecretUnreadable", "s-x"}},
		"second removed":   {removedClient(1), want{corev1.ConditionTrue, corev1.ConditionFalse, "RemovingClient", "s-x"}},
		"first removed":    {removedClient(0), want{corev1.ConditionFalse, corev1.ConditionFalse, "RemovingClient", "s-y"}},
		"paused": {func(o *Observed) { client(0, inState(certificates.Missing))(o); pausedSpec(o) },
			want{corev1.ConditionFalse, corev1.ConditionFalse, "Paused", ""}},
		"hibernated": {func(o *Observed) { client(0, inState(certificates.Missing))(o); *o.Cluster.Spec.Replicas = 0 },
			want{corev1.ConditionFalse, corev1.ConditionFalse, "Hibernated", ""}},
		"not valid yet": {client(0, inState(certificates.NotYetValid)), want{corev1.ConditionFalse, corev1.ConditionFalse, "Issuing", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t, 3, "a b c", issuedHere(), withClients("x", "y"), test.change)
			o.Cluster.Status.Binding = &corev1.LocalObjectReference{Name: "s-x"}
			status := Status(o, Decide(o))
			if len(status.Clients) != 2 {
				t.Fatalf("the status tells about %+v", status.Clients)
			}
			got := want{ready: status.Clients[0].Ready}
			for _, c := range status.Conditions {
				if c.Type == v1beta2.ClusterConditionClientsAsDeclared {
					got.condition, got.reason = c.Status, c.Reason
				}
			}
			if status.Binding != nil {
				got.binding = status.Binding.Name
			}
			if got != test.want {
				t.Errorf("the status says %+v, want %+v: %+v", got, test.want, status.Clients)
			}
			for _, c := range status.Clients {
				if (c.Ready == corev1.ConditionTrue) != (c.Reason == "" && c.Message == "") {
					t.Errorf("a client that is not ready needs a reason and a message, and no other: %+v", c)
				}
			}
		})
	}
}

// TestClientsCountForReady: a cluster is not as declared while a client lacks its Secret, and
// a name conflict takes a person.
func TestClientsCountForReady(t *testing.T) {
	o := observed(t, 3, "a b c", issuedHere(), withClients("x"), client(0, inState(certificates.NotOwned)))
	s := standingOf(&o, Decide(o))
	if s.ready || s.reason != "ClientsAsDeclared" || !strings.Contains(s.message, "s-x") {
		t.Errorf("Ready says %+v", s)
	}
	o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{
		Type: v1beta2.ClusterConditionClientsAsDeclared, Status: corev1.ConditionFalse,
		LastTransitionTime: testNow.Add(-2 * waits.Soon).Format(time.RFC3339),
	}}
	if s := standingOf(&o, Decide(o)); !s.stalled {
		t.Errorf("a name conflict that lasts says %+v", s)
	}
	o = observed(t, 3, "a b c", issuedHere(), withClients("x"))
	if s := standingOf(&o, Decide(o)); !s.ready {
		t.Errorf("a cluster that is as declared says %+v", s)
	}
}

// TestClientIsRecordedSoon: the step that lists a Secret is followed by the step that creates it.
func TestClientIsRecordedSoon(t *testing.T) {
	o := observed(t, 3, "a b c", issuedHere(), withClients("x"), client(0, inState(certificates.Missing)), unrecorded)
	plan := Decide(o)
	if plan.RequeueAfter != recheckUnannounced {
		t.Errorf("it is looked at again after %v", plan.RequeueAfter)
	}
	o.Cluster.Status = Status(o, plan)
	if got := describe(Decide(o)); got != "steady: WriteClientSecret x All" {
		t.Errorf("then the plan is %s", got)
	}
}

// TestRemovedClientIsForgotten: the status lists the Secret of a removed client until it does
// not exist, and no longer.
func TestRemovedClientIsForgotten(t *testing.T) {
	o := observed(t, 3, "a b c", issuedHere(), withClients("x"), removedClient(0))
	o.Cluster.Spec.Clients = nil
	o.Cluster.Status = Status(o, Decide(o))
	if len(o.Cluster.Status.Clients) != 1 || o.Cluster.Status.Clients[0].Name != "" || o.Cluster.Status.Binding != nil {
		t.Fatalf("before it is deleted the status says %+v, binding %v", o.Cluster.Status.Clients, o.Cluster.Status.Binding)
	}
	client(0, inState(certificates.Missing))(&o)
	status := Status(o, Decide(o))
	if len(status.Clients) != 0 {
		t.Errorf("after it was deleted the status says %+v", status.Clients)
	}
	for _, c := range status.Conditions {
		if c.Type == v1beta2.ClusterConditionClientsAsDeclared {
			t.Errorf("a cluster without clients has condition %+v", c)
		}
	}
}

// TestDeletedClusterKeepsClientStatus: the controller reads from the status which Secrets it
// must unprotect.
func TestDeletedClusterKeepsClientStatus(t *testing.T) {
	o := observed(t, 3, "a b c", issuedHere(), withClients("x", "y"), deleting)
	o.Clients = nil
	if status := Status(o, Decide(o)); len(status.Clients) != 2 {
		t.Errorf("the status says %+v", status.Clients)
	}
}
