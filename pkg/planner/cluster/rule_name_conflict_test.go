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
