// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// randomLoss is a cluster without a quorum, in which anything may be the matter with each
// member, in the language of observed. Few raft indexes make equal ones frequent.
func randomLoss(t *testing.T, dice *rand.Rand) (Observed, string) {
	t.Helper()
	var words []string
	for i := range 1 + dice.IntN(5) {
		marks := []string{
			"noleader", "down,index=0", "nopod,index=0", "noleader,terminating", "terminating,index=0", "finished,index=0", "unknown,index=0",
		}[dice.IntN(7)]
		if !strings.Contains(marks, "index") {
			marks += fmt.Sprintf(",index=%d", 90+dice.IntN(2))
		}
		for mark, one := range map[string]int{"claim": 2, "learner": 4, "v=3.3.27": 5} {
			if dice.IntN(one) == 0 && (mark[0] != 'v' || strings.HasPrefix(marks, "noleader")) {
				marks += "," + mark
			}
		}
		words = append(words, fmt.Sprintf("m%d:%s", i, marks))
	}
	dice.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	text := strings.Join(words, " ")
	return observed(t, 1+dice.IntN(5), text, noQuorum), text
}

// TestDryRunShowsWhatARecoveryDoes plans the recovery of random clusters twice: from the
// status, as /recover does, and from the observation that this status was written from, as
// the controller does.
func TestDryRunShowsWhatARecoveryDoes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	planned, rejected, ties, volumes := 0, 0, 0, 0
	tooFew := func() bool { return planned < 200 || rejected < 200 || ties < 20 || volumes < 20 }
	for i := 0; i < 3000 || tooFew() && i < 30000; i++ {
		o, text := randomLoss(t, dice)
		stored := o.Cluster.DeepCopy()
		stored.Status = Status(o, Decide(o))
		requested := ""
		if dice.IntN(3) == 0 {
			requested = fmt.Sprintf("m%d", dice.IntN(5))
		}
		shown, err := diagnosis.FromStatus(stored, resources.RevisionGoesBack).PlanRecovery(requested)

		o.Cluster.Status = stored.Status
		asked(func(r *v1beta2.RecoveryStatus) { r.Member, r.OldMembers = requested, nil })(&o)
		plan := Decide(o)
		done := recordedBy(plan)
		switch {
		case err != nil:
			rejected++
			if done != nil || !errors.Is(err, diagnosis.ErrNoSource) && !errors.Is(err, diagnosis.ErrNotASource) &&
				!errors.Is(err, diagnosis.ErrNoVolume) && !errors.Is(err, diagnosis.ErrSeveralVolumes) {
				t.Errorf("%s from %q: the dry run says %v, and the recovery begins: %+v", text, requested, err, done)
			}
		case done == nil:
			t.Errorf("%s from %q: the dry run shows %s, and the recovery waits: %+v", text, requested, shown.Source.Name, plan.Wait)
		default:
			planned++
			if shown.PVC != "" {
				volumes++
			}
			if len(shown.Survivors) > 1 && shown.Survivors[0].RaftIndex == shown.Survivors[1].RaftIndex {
				ties++
			}
			if done.Source.Member != shown.Source.Name || done.Source != shown.APISource() || done.ExpectedLoss != shown.EstimatedDataLoss {
				t.Errorf("%s from %q: the dry run shows %s at %d: %s\nthe recovery does %s at %d: %s", text, requested,
					shown.Source.Name, shown.Source.RaftIndex, shown.EstimatedDataLoss, done.Source.Member, done.Source.RaftIndex, done.ExpectedLoss)
			}
		}
		if t.Failed() {
			return
		}
	}
	if tooFew() {
		t.Errorf("%d recoveries were planned, %d of them with equal raft indexes and %d from a volume, and %d rejected: too few of one kind", planned, ties, volumes, rejected)
	}
}

// recordedBy returns the recovery that a plan begins, or nil.
func recordedBy(plan Plan) *v1beta2.RecoveryStatus {
	for _, a := range plan.Actions {
		if record, ok := a.(RecordRecovery); ok && record.Recovery.Phase == v1beta2.RecoveryPhaseFilling {
			return &record.Recovery
		}
	}
	return nil
}

// TestRecoveryIsAcceptedOnlyAfterALoss: the condition by which /recover accepts a request
// is True only for a quorum that is certainly lost.
func TestRecoveryIsAcceptedOnlyAfterALoss(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 2))
	for range 500 {
		o, text := randomLoss(t, dice)
		status := Status(o, Decide(o))
		c := find(status, v1beta2.ClusterConditionQuorumLost)
		if loss := diagnoseQuorumLoss(&o); (c.Status == corev1.ConditionTrue) != loss.Certain || loss.Permanent && !loss.Certain {
			t.Fatalf("%s: the condition is %s and the diagnosis %+v", text, c.Status, loss)
		}
	}
}
