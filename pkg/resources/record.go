// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Record is what must be known of the past of a cluster so that nothing is done twice. It is
// kept in a ConfigMap, beside what the user declares. What can be read again from members, pods,
// PVCs and the status completes a record that was lost.
type Record struct {
	// BootstrapMember is the name of the first member of the present etcd.
	BootstrapMember string
	// ClusterID is etcd's cluster ID in hexadecimal, once the bootstrap member has responded.
	ClusterID string
	// Log says what is in the raft log of etcd.
	Log LogRecord
	// Recovery is the last recovery; nil if there was none.
	Recovery *v1beta2.RecoveryStatus
	// Recoveries are the IDs of the recoveries that ever began, the oldest first, and at most
	// MostRecoveries. None of them begins again for a repeated request, as from an API whose
	// state was rolled back.
	Recoveries []string
	// Removed are the names of members that were removed from etcd, the oldest first, and at most
	// mostRemoved. No name comes back. A status from before a removal names that member, and
	// nothing else would tell it from a member that was lost with its data.
	Removed []string
	// Restores are the EtcdRestores whose data the cluster has taken over, the newest first, and at most
	// v1beta2.MaxClusterRestores. The status tells more of each, and may be lost. A tenant may write the record. So
	// only what stops a repeated EtcdRestore is kept here: its name, UID and request, and the time. A forged entry
	// costs no data: an EtcdRestore that it stops ends with AlreadyRestored, which says how to ask again.
	Restores []v1beta2.ClusterRestore
	// PutBack says how often images were put back that something else has set on pods.
	PutBack PutBackRecord
	// Rotation says how often the last rotation of the CA was carried out.
	Rotation RotationRecord
	// CorruptVoters is how many voters there were when etcd said first that their data differs (alarm CORRUPT); 0 while
	// it does not. The member list no longer tells after a voter was removed. A forged number has as many members join as
	// the spec declares, as disarming the alarm does.
	CorruptVoters int
	// Unwritten is the ID in hexadecimal of an old member of a take-over whose removal leaves one voter. Until a write
	// follows, that voter may not have the removal on its disk, and nothing else tells of the member. A forged ID costs a
	// write.
	Unwritten string
}

// mostRemoved is how many removed members a record remembers. A status is hardly from before as many.
const mostRemoved = 50

// MostRecoveries is how many recoveries a record remembers. No API is restored from before as
// many.
const MostRecoveries = 200

// Keys of the ConfigMap.
const (
	recordClusterUID      = "clusterUID"
	recordBootstrapMember = "bootstrapMember"
	recordClusterID       = "clusterID"
	recordLog             = "raftLog"
	recordRecovery        = "recovery"
	recordRecoveries      = "recoveries"
	recordRemoved         = "removed"
	recordRestores        = "restores"
	recordPutBack         = "imagesPutBack"
	recordRotation        = "caRotated"
	recordCorruptVoters   = "corruptVoters"
	recordUnwritten       = "unwrittenRemoval"
	recordDeclaration     = "declaration"

	recordSuffix = "-record"
)

var recordKeys = []string{
	recordClusterUID, recordBootstrapMember, recordClusterID, recordLog, recordRecovery, recordRecoveries, recordRemoved, recordRestores, recordPutBack,
	recordRotation, recordCorruptVoters, recordUnwritten, recordDeclaration,
}

// bootstrapSuffix is as long as the random part of the names of other members.
const bootstrapSuffix = 10

// BootstrapMember returns the name of the member that starts c. It follows from the UID, so
// that every controller starts the same one, also if the record was lost before that.
func BootstrapMember(c *v1beta2.EtcdCluster) string {
	sum := sha256.Sum256([]byte(c.UID))
	return c.Name + "-" + rand.SafeEncodeString(hex.EncodeToString(sum[:])[:bootstrapSuffix])
}

// RecordName returns the name of the ConfigMap with the record of c.
func RecordName(c *v1beta2.EtcdCluster) string { return c.Name + recordSuffix }

// RecordConfigMap returns the new ConfigMap with the record of c.
func RecordConfigMap(c *v1beta2.EtcdCluster, r Record) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: objectMeta(c, RecordName(c), nil, nil)}
	cm.Data = r.data(c)
	return cm
}

// WithRecord returns a copy of live that holds r and says that it is the record of c. Keys
// of others stay.
func WithRecord(c *v1beta2.EtcdCluster, live *corev1.ConfigMap, r Record) *corev1.ConfigMap {
	cm := live.DeepCopy()
	for _, key := range recordKeys {
		delete(cm.Data, key)
	}
	cm.Data = merged(cm.Data, r.data(c))
	putAll(&cm.Labels, Labels(c.Name))
	Mark(c, cm)
	return cm
}

// MarkRecord has a record say in its content, too, whose it is, and says whether that is a
// change.
func MarkRecord(c *v1beta2.EtcdCluster, live *corev1.ConfigMap) bool {
	return putAll(&live.Data, map[string]string{recordClusterUID: string(c.UID)})
}

// RecordMarked is true if MarkRecord would change nothing.
func RecordMarked(c *v1beta2.EtcdCluster, live *corev1.ConfigMap) bool {
	return live.Data[recordClusterUID] == string(c.UID)
}

// OwnsRecord is Owns for the ConfigMap of a record, and more. A ConfigMap whose annotations
// were removed is known by its content: by the UID, or by the bootstrap member, whose name follows
// from the UID. An empty ConfigMap that names no owner holds nothing of another cluster.
func OwnsRecord(c *v1beta2.EtcdCluster, live *corev1.ConfigMap) bool {
	if metav1.GetControllerOfNoCopy(live) != nil || live.Annotations[AnnotationClusterUID] != "" {
		return Owns(c, live)
	}
	if uid, found := live.Data[recordClusterUID]; found {
		return c.UID != "" && uid == string(c.UID)
	}
	if member, found := live.Data[recordBootstrapMember]; found {
		return c.UID != "" && member == BootstrapMember(c)
	}
	return len(live.Data) == 0 && len(live.BinaryData) == 0
}

// ParseRecord returns what a ConfigMap holds. What cannot be read counts as missing.
func ParseRecord(cm *corev1.ConfigMap) Record {
	r := Record{
		BootstrapMember: cm.Data[recordBootstrapMember],
		ClusterID:       cm.Data[recordClusterID],
		Log:             parseLog(cm.Data[recordLog]),
		Recoveries:      strings.Fields(cm.Data[recordRecoveries]),
		Removed:         strings.Fields(cm.Data[recordRemoved]),
		PutBack:         parsePutBack(cm.Data[recordPutBack]),
		Rotation:        parseRotation(cm.Data[recordRotation]),
		Unwritten:       cm.Data[recordUnwritten],
	}
	if n, err := strconv.Atoi(cm.Data[recordCorruptVoters]); err == nil && n > 0 {
		r.CorruptVoters = n
	}
	r.Recovery = parseRecovery(cm.Data[recordRecovery])
	r.Restores = parseRestores(cm.Data[recordRestores])
	return r
}

func parseRestores(text string) []v1beta2.ClusterRestore {
	var restores []v1beta2.ClusterRestore
	if json.Unmarshal([]byte(text), &restores) != nil {
		return nil
	}
	return RecordedRestores(restores)
}

// RecordedRestores returns what a record keeps of restores: of those whose data the cluster has, what stops an
// EtcdRestore that repeats one. The newest are first.
func RecordedRestores(restores []v1beta2.ClusterRestore) []v1beta2.ClusterRestore {
	var kept []v1beta2.ClusterRestore
	for _, r := range restores {
		if r.UID != "" && r.Time != nil {
			kept = append(kept, v1beta2.ClusterRestore{Name: r.Name, UID: r.UID, Request: r.Request, Time: r.Time.DeepCopy()})
		}
	}
	slices.SortStableFunc(kept, func(a, b v1beta2.ClusterRestore) int { return b.Time.Compare(a.Time.Time) })
	return kept[:min(len(kept), v1beta2.MaxClusterRestores)]
}

func formatRestores(restores []v1beta2.ClusterRestore) string {
	text, err := json.Marshal(restores)
	if err != nil || len(restores) == 0 {
		return "" // it holds strings and times, which can always be written
	}
	return string(text)
}

func parseRecovery(text string) *v1beta2.RecoveryStatus {
	recovery := &v1beta2.RecoveryStatus{}
	if json.Unmarshal([]byte(text), recovery) != nil || recovery.ID == "" {
		return nil
	}
	return recovery
}

func formatRecovery(r *v1beta2.RecoveryStatus) string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // it holds strings, numbers and times, which can always be written
	}
	return string(text)
}

func (r Record) data(c *v1beta2.EtcdCluster) map[string]string {
	data := map[string]string{
		recordClusterUID: string(c.UID), recordBootstrapMember: r.BootstrapMember, recordClusterID: r.ClusterID,
		recordLog: r.Log.String(), recordRecoveries: strings.Join(r.Recoveries, " "), recordDeclaration: declarationOf(c),
		recordRemoved: strings.Join(r.Removed, " "), recordPutBack: r.PutBack.String(), recordRestores: formatRestores(r.Restores),
		recordRotation: r.Rotation.String(), recordUnwritten: r.Unwritten,
	}
	if r.CorruptVoters > 0 {
		data[recordCorruptVoters] = strconv.Itoa(r.CorruptVoters)
	}
	if r.Recovery != nil {
		data[recordRecovery] = formatRecovery(r.Recovery)
	}
	maps.DeleteFunc(data, func(_, value string) bool { return value == "" })
	return data
}

// Equal is true if both say the same.
func (r Record) Equal(other Record) bool {
	return r.BootstrapMember == other.BootstrapMember && r.ClusterID == other.ClusterID && r.Log == other.Log && r.PutBack.String() == other.PutBack.String() && r.Rotation == other.Rotation && r.CorruptVoters == other.CorruptVoters && r.Unwritten == other.Unwritten &&
		slices.Equal(r.Recoveries, other.Recoveries) && slices.Equal(r.Removed, other.Removed) && formatRestores(r.Restores) == formatRestores(other.Restores) && isSameRecovery(r.Recovery, other.Recovery)
}

func isSameRecovery(a, b *v1beta2.RecoveryStatus) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return formatRecovery(a) == formatRecovery(b)
}

// WithRemoved returns the record after a member was removed from etcd.
func (r Record) WithRemoved(name string) Record {
	if slices.Contains(r.Removed, name) {
		return r
	}
	r.Removed = append(slices.Clone(r.Removed), name)
	r.Removed = r.Removed[max(0, len(r.Removed)-mostRemoved):]
	return r
}

// WithRecovery returns the record after a step of a recovery. When the old members have
// ended, the record is that of the new etcd.
func (r Record) WithRecovery(recovery *v1beta2.RecoveryStatus) Record {
	began := r.Recoveries
	if r.Recovery != nil {
		began = MergeRecoveries(began, []string{r.Recovery.ID})
	}
	r.Recoveries = MergeRecoveries(began, []string{recovery.ID})
	if r.Recovery != nil && r.Recovery.Phase == v1beta2.RecoveryPhaseCleaning && recovery.Phase == v1beta2.RecoveryPhaseAbandoned && recovery.OldClusterID != "" {
		r.ClusterID = recovery.OldClusterID // the old members come back
	}
	r.Recovery = recovery.DeepCopy()
	if recovery.Phase == v1beta2.RecoveryPhaseCleaning {
		r.ClusterID, r.BootstrapMember = recovery.ClusterID, recovery.RecoveryMember
	}
	return r
}
