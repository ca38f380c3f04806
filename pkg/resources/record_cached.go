// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// mostCached is how many bytes the cache keeps of a record. Without its declaration a real one has a few KiB.
const mostCached = 64 << 10

const (
	// recordOthers stands in the cache for the keys of others. A record with one is not empty.
	recordOthers = "others"
	// recordTooLarge stands in the cache for the content of a record that is too large. Its cluster does not own it.
	recordTooLarge = "tooLarge"
)

// CachedRecord returns what the controller keeps in memory of a ConfigMap. Any user may give a ConfigMap the labels of a
// record, so the name decides. Without that name, or if the ConfigMap is larger than a record ever is, the controller
// keeps its name and UID only. A digest takes the place of the declaration, which is compared and not read.
func CachedRecord(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cut := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion,
		CreationTimestamp: cm.CreationTimestamp, DeletionTimestamp: cm.DeletionTimestamp,
	}}
	if !strings.HasSuffix(cm.Name, recordSuffix) {
		cut.Data = map[string]string{recordOthers: ""}
		return cut
	}
	kept := cut.DeepCopy()
	kept.Labels, kept.OwnerReferences = cm.Labels, cm.OwnerReferences
	for key, value := range cm.Annotations {
		if strings.HasPrefix(key, v1beta2.SchemeGroupVersion.Group+"/") {
			putAll(&kept.Annotations, map[string]string{key: value})
		}
	}
	for _, key := range recordKeys {
		if value, has := cm.Data[key]; has {
			putAll(&kept.Data, map[string]string{key: value})
		}
	}
	if text, has := kept.Data[recordDeclaration]; has {
		kept.Data[recordDeclaration] = digestOf(text)
	}
	if len(kept.Data) == 0 && len(cm.Data)+len(cm.BinaryData) > 0 {
		kept.Data = map[string]string{recordOthers: ""}
	}
	if kept.Size() > mostCached {
		cut.Data = map[string]string{recordTooLarge: ""}
		return cut
	}
	return kept
}

// digestOf returns what stands for a declaration in the cache; a digest stands for itself. What another release has written
// in another way, such as without a field that is false, has the same digest.
func digestOf(text string) string {
	if text == "" || strings.HasPrefix(text, "sha256:") {
		return text
	}
	var d declaration
	canonical := []byte(text)
	if json.Unmarshal(canonical, &d) == nil {
		if again, err := json.Marshal(d); err == nil {
			canonical = again
		}
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ClusterOfRecord returns the EtcdCluster whose record has the name.
func ClusterOfRecord(name string) (cluster string, is bool) {
	return strings.CutSuffix(name, recordSuffix)
}
