// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
)

// TestRemediesOfConflictsSaveFirst: no remedy leads to the deletion of members of an earlier cluster, or of what
// leads to them, before their data is saved.
func TestRemediesOfConflictsSaveFirst(t *testing.T) {
	t.Parallel()
	record := func(o *Observed) { o.Record.State = NotOwned }
	service := func(o *Observed) { o.PeerService = NotOwned }
	client := func(o *Observed) { o.ClientService = NotOwned }
	ending := func(o *Observed) { o.Pods[len(o.Pods)-1].Terminating = true }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		saves bool
	}{
		"the record":             {edits(record, pod("old", false)), true},
		"the peer Service":       {edits(service, pod("old", false)), true},
		"the client Service":     {edits(unresponsive, client, pod("old", false)), true},
		"the pods":               {edits(unresponsive, pod("old", false)), true},
		"a record without pods":  {edits(record), false},
		"pods that are ending":   {edits(unresponsive, pod("old", false), ending), false},
		"its own pods, a record": {edits(record, pod("own", true)), false},
	} {
		plan := Decide(observed(t, 3, "", test.edits...))
		if plan.Rule != RuleNameConflict || strings.Contains(plan.Wait.Remedy, "save it first: an EtcdBackup with spec.etcdEndpoints [http://c-client:2379]") != test.saves {
			t.Errorf("%s: %s: %+v", name, plan.Rule, plan.Wait)
		}
	}
}

// TestRemediesOfProtectedConflicts: the admission policy rejects the deletion of a protected object of an earlier cluster until
// an administrator has removed its label. One of another cluster is protected as long as that cluster declares it.
func TestRemediesOfProtectedConflicts(t *testing.T) {
	t.Parallel()
	record := func(o *Observed) { o.Record.State = NotOwned }
	service := func(o *Observed) { o.PeerService = NotOwned }
	client := func(o *Observed) { o.ClientService = NotOwned }
	protected := func(f *Found) { f.Protected = true }
	ofAnother := func(f *Found) { f.Protected, f.Labelled = true, false }
	for name, test := range map[string]struct {
		members string
		edits   []func(*Observed)
		want    string
	}{
		"the record":         {"", edits(record, found(KindRecord, "c-record", "old", protected)), "configmap c-record -n n"},
		"the peer Service":   {"", edits(service, found(KindService, "c", "old", protected)), "service c -n n"},
		"the client Service": {"", edits(unresponsive, client, found(KindService, "c-client", "old", protected)), "service c-client -n n"},
		"a client Service beside a cluster that serves": {"a b c", edits(client, found(KindService, "c-client", "old", protected)), "service c-client -n n"},
		"a Service that is not protected":               {"", edits(service, found(KindService, "c", "old")), ""},
		"a Service of another cluster":                  {"", edits(unresponsive, client, found(KindService, "c-client", "old", ofAnother)), ""},
	} {
		plan := Decide(observed(t, 3, test.members, test.edits...))
		if plan.Wait == nil || plan.Wait.Reason != ReasonNameConflict {
			t.Errorf("%s: %s: %+v", name, plan.Rule, plan.Wait)
			continue
		}
		want := "kubectl label " + test.want + " etcd.database.coreos.com/deletion-protection-. Delete that "
		if test.want != "" && !strings.Contains(plan.Wait.Remedy, want) || test.want == "" && strings.Contains(plan.Wait.Remedy, "kubectl label") {
			t.Errorf("%s: the remedy is %q", name, plan.Wait.Remedy)
		}
	}
}
