// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestBackupOfRevision: the name of an EtcdBackup chooses as LastBackup does. Each record is of one hour.
func TestBackupOfRevision(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	at := func(hour int) metav1.Time { return metav1.NewTime(begun.Add(time.Duration(hour) * time.Hour)) }
	type record struct {
		hour        int
		revision    int64
		unconfirmed bool
		differs     bool
	}
	recovered := func(c *v1beta2.EtcdCluster) {
		c.Status.Recovery = &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseSucceeded, CompletionTime: ptr.To(at(10))}
	}
	restored := func(c *v1beta2.EtcdCluster) {
		recovered(c)
		c.Status.Restores = []v1beta2.ClusterRestore{{Name: "r", Backup: "b", Revision: 3, Time: ptr.To(at(10))}}
	}
	for name, test := range map[string]struct {
		records  []record // the oldest first
		revision *int64
		of       string // what the EtcdBackup is of
		cluster  func(*v1beta2.EtcdCluster)
		want     string
	}{
		"newest":                                   {[]record{{1, 1, false, false}, {2, 2, false, false}}, nil, "c", nil, "2"},
		"one that a user names":                    {[]record{{1, 1, false, false}, {2, 2, false, false}}, ptr.To[int64](1), "c", nil, "1"},
		"one that does not exist":                  {[]record{{1, 1, false, false}}, ptr.To[int64](7), "c", nil, ""},
		"a late backup of old data":                {[]record{{1, 5, false, false}, {2, 9, false, false}, {3, 6, true, false}}, nil, "c", nil, "2"},
		"a late backup that has more":              {[]record{{1, 5, false, false}, {2, 6, true, false}}, nil, "c", nil, "2"},
		"a late backup of data that differs":       {[]record{{1, 5, false, false}, {2, 9, false, true}}, nil, "c", nil, "1"},
		"that backup, which a user names":          {[]record{{1, 5, false, false}, {2, 9, false, true}}, ptr.To[int64](9), "c", nil, "2"},
		"no other than of data that differs":       {[]record{{1, 5, false, true}, {2, 9, false, true}}, nil, "c", nil, "2"},
		"revisions from before a recovery":         {[]record{{9, 9, false, false}, {11, 6, true, false}}, nil, "c", recovered, "11"},
		"what a restore has replaced":              {[]record{{1, 3, false, false}, {2, 9, false, false}}, nil, "c", restored, "1"},
		"what was made since the restore":          {[]record{{1, 3, false, false}, {2, 9, false, false}, {11, 4, false, false}}, nil, "c", restored, "11"},
		"replaced data by its revision":            {[]record{{1, 3, false, false}, {2, 9, false, false}}, ptr.To[int64](9), "c", restored, "2"},
		"a revision from before and after":         {[]record{{1, 3, false, false}, {2, 9, false, false}, {11, 9, false, false}}, ptr.To[int64](9), "c", restored, "11"},
		"restore of another cluster":               {[]record{{1, 3, false, false}, {2, 9, false, false}}, nil, "another", recovered, "2"},
		"everything is of an earlier cluster":      {[]record{{-3, 3, false, false}, {-2, 9, false, false}}, nil, "c", nil, "-2"},
		"of an earlier cluster and of the present": {[]record{{-3, 3, false, false}, {2, 1, false, false}}, nil, "c", nil, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: test.of}}}
			for _, r := range test.records {
				end, uri := at(r.hour), strconv.Itoa(r.hour)
				b.Status.URI, b.Status.LastSuccessDate, b.Status.EtcdRevision, b.Status.Unconfirmed, b.Status.Verified = uri, end, r.revision, r.unconfirmed, true
				b.Status.DataDiffers = r.differs
				b.Status.History = append([]v1beta2.BackupRecord{{
					StartTime: end, CompletionTime: &end, Succeeded: true, Verified: true, URI: uri, Revision: r.revision, Unconfirmed: r.unconfirmed, DataDiffers: r.differs,
				}}, b.Status.History...)
			}
			c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: at(0)}}
			if test.cluster != nil {
				test.cluster(c)
			}
			got, _, _ := BackupOfRevision(b, test.revision, c, begun.Add(100*time.Hour))
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
