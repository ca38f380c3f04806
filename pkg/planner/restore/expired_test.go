// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestRestoreExpires: a restore in place that waits ends after a day, so that it does not replace data when the cause of its
// wait ends much later. One that the cluster carries out, that a new cluster waits for, or that is automatic does not.
func TestRestoreExpires(t *testing.T) {
	t.Parallel()
	missing := func(o *Observed) { fromBackup(nil)(o); o.Backup = nil }
	none := func(o *Observed) { fromBackup(nil)(o); o.Backup.Status = v1beta2.BackupStatus{} }
	hibernated := func(o *Observed) { o.Cluster.Spec.Replicas = ptr.To[int32](0) }
	automatic := func(o *Observed) {
		o.Restore.Annotations = map[string]string{v1beta2.AnnotationAutomaticRestore: "uid-c"}
	}
	verified := func(o *Observed) {
		checked(1, good())(o)
		o.Restore.Status.Conditions = append(o.Restore.Status.Conditions, metav1.Condition{Type: ConditionVerified, Status: metav1.ConditionTrue})
	}
	for name, test := range map[string]struct {
		edits []func(*Observed)
		ends  bool
	}{
		"the EtcdBackup is missing":              {[]func(*Observed){missing}, true},
		"the EtcdBackup has no backup":           {[]func(*Observed){none}, true},
		"the cluster is paused":                  {[]func(*Observed){held, verified, paused}, true},
		"the cluster is hibernated":              {[]func(*Observed){held, verified, hibernated}, true},
		"nothing keeps it any more":              {[]func(*Observed){held, verified}, true},
		"neither EtcdBackup nor cluster":         {[]func(*Observed){missing, homeless}, true},
		"the cluster carries it out":             {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), recovery(v1beta2.RecoveryPhaseFilling)}, false},
		"a new cluster waits for it":             {[]func(*Observed){missing, filling}, false},
		"the cluster is created from a template": {[]func(*Observed){missing, homeless, templated}, false},
		"automatic":                              {[]func(*Observed){missing, automatic}, false},
	} {
		before := observed(test.edits...)
		before.Now = epoch.Add(maxWaitInPlace - time.Second)
		if plan := Decide(before); plan.Record != nil {
			t.Errorf("%s: it ends too early: %+v", name, plan.Record)
		}
		o := observed(test.edits...)
		o.Now = epoch.Add(maxWaitInPlace)
		plan := Decide(o)
		if ends := plan.Record != nil && plan.Record.Reason == ReasonExpired; ends != test.ends {
			t.Errorf("%s: %+v", name, plan)
			continue
		}
		if !test.ends {
			continue
		}
		if plan.Action != ActionNone || plan.Record.Succeeded || !strings.Contains(plan.Record.Message, "create another EtcdRestore") {
			t.Errorf("%s: %+v, %+v", name, plan, plan.Record)
		}
		wasVerified := meta.IsStatusConditionTrue(o.Restore.Status.Conditions, ConditionVerified)
		o.Restore.Status = Status(o, plan)
		if is := meta.IsStatusConditionTrue(o.Restore.Status.Conditions, ConditionVerified); is != wasVerified {
			t.Errorf("%s: Verified is %v and was %v: %+v", name, is, wasVerified, o.Restore.Status.Conditions)
		}
		o.Cluster = observed().Cluster
		o.Now = o.Now.Add(time.Hour)
		if again := Decide(o); o.Restore.Status.Phase != v1beta2.RestorePhaseFailed || again.Action == ActionRequestRecovery {
			t.Errorf("%s: it goes on after its end: %+v", name, again)
		}
	}
}
