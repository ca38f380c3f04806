// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// trusts is what a member trusts and accepts: the present CA, or the one before.
type trusts struct {
	before, accepts bool
}

// issuance is what cert-manager has done for the requests.
type issuance struct {
	secret  certificates.State
	request requestState
	served  bool
}

func issuances() []issuance {
	var list []issuance
	for state := certificates.Unknown; state <= certificates.Usable; state++ {
		for _, request := range []requestState{requestMissing, requestCurrent, requestDrifted, requestNotOwned} {
			list = append(list, issuance{state, request, true})
		}
		list = append(list, issuance{state, requestMissing, false})
	}
	return list
}

// see makes the observation of an issuance and of what each member trusts.
func (i issuance) see(members []trusts) func(*Observed) {
	return func(o *Observed) {
		requested()(o)
		o.Trust, o.CertManager.Served = "now", i.served
		o.Certificates[1].State, o.Certificates[1].Message = i.secret, "as it is"
		requestIs(1, i.request, "")(o)
		for n := range o.Pods {
			o.Pods[n].Trust = "now"
			if members[n].before {
				o.Pods[n].Trust = "before"
			}
			o.Pods[n].Accepts = members[n].accepts
		}
	}
}

// TestCertManagerNeverCostsAQuorum goes through what cert-manager may have issued, in time,
// late or no longer, and through how far the members have come with it. No member is
// disturbed while a secret cannot be used. One member at a time restarts for a new CA.
func TestCertManagerNeverCostsAQuorum(t *testing.T) {
	states, restarts := 0, 0
	each := func(health, trust int, i issuance) {
		var marks []string
		var members []trusts
		for _, name := range []string{"a", "b", "c"} {
			marks = append(marks, name+":claim"+[]string{"", ",down", ",sick"}[health%3])
			members = append(members, []trusts{{false, true}, {true, true}, {true, false}}[trust%3])
			health, trust = health/3, trust/3
		}
		text := strings.Join(marks, " ")
		o := observed(t, 3, text, i.see(members))
		plan := Decide(o)
		states++
		f := countFacts(&o, true)
		for _, invariant := range planInvariants {
			if wrong := invariant.check(f, plan); wrong != "" {
				t.Fatalf("%s: %s: %s, %+v, %+v: %s", invariant.name, wrong, text, i, members, describe(plan))
			}
		}
		touched := slices.ContainsFunc(plan.Actions, touches)
		if i.secret != certificates.Usable && (touched || plan.Wait == nil) {
			t.Fatalf("a secret cannot be used: %s, %+v, %+v: %s", text, i, members, describe(plan))
		}
		if slices.ContainsFunc(plan.Actions, recreates) {
			restarts++
		}
	}
	for health := range 27 {
		for trust := range 27 {
			for _, i := range issuances() {
				each(health, trust, i)
			}
		}
	}
	if restarts == 0 {
		t.Error("no member ever restarts for a new CA")
	}
	t.Logf("%d states, %d restarts", states, restarts)
}

// touches is true for what takes a member, its pod or its data from what runs.
func touches(a Action) bool {
	switch a.(type) {
	case DeletePod, RecreatePod, UpgradePod, RemoveMember, DeletePVC, CreatePod, AddMember, MoveLeader:
		return true
	default:
		return false
	}
}

func recreates(a Action) bool {
	_, is := a.(RecreatePod)
	return is
}

// TestCertManagerRollout: members wait for an issuer that is late. What it issues again is
// rolled out one by one. A secret that a user deletes stops that until it is back.
func TestCertManagerRollout(t *testing.T) {
	old := trusts{before: true, accepts: true}
	usable := issuance{certificates.Usable, requestCurrent, true}
	missing := issuance{certificates.Missing, requestCurrent, true}
	checkDecisions(t, []decision{
		{"it is late, and the members serve", 3, "a:claim b:claim c:claim", edits(missing.see([]trusts{{}, {}, {}})), "certificates: wait SecretMissing"},
		{"it issues from a new CA", 3, "a:claim b:claim c:claim", edits(usable.see([]trusts{old, old, old})), "rollout: RecreatePod b " + testVersion},
		{"the next one waits", 3, "a:claim b:claim,sick c:claim", edits(usable.see([]trusts{old, {}, old})), "rollout: wait WaitingForMember"},
		{"the next member restarts when the one before trusts both CAs", 3, "a:claim b:claim c:claim", edits(usable.see([]trusts{old, {}, old})), "rollout: RecreatePod c " + testVersion},
		{"the leader hands over first", 3, "a:claim b:claim c:claim", edits(usable.see([]trusts{old, {}, {}})), "rollout: MoveLeader a>b"},
		{"the secret is deleted in the middle", 3, "a:claim b:claim c:claim", edits(missing.see([]trusts{old, {}, old})), "certificates: wait SecretMissing"},
		{"a secret that the issuer has spoilt", 3, "a:claim b:claim c:claim",
			edits(issuance{certificates.Unusable, requestCurrent, true}.see([]trusts{old, old, old})), "certificates: wait CertificateUnusable"},
	})
}
