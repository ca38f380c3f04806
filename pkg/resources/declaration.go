// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// mostDeclared is how many bytes of a declaration a record takes. A ConfigMap holds 1 MiB.
const mostDeclared = 256 << 10

// ErrNotDeclared means that a record does not hold what its EtcdCluster declares.
var ErrNotDeclared = errors.New("the record has no declaration: the EtcdCluster is larger than 256 KiB, or no controller has recorded it")

// declaration is what a user has declared, as the record of a cluster keeps it. The record is
// then enough to make the EtcdCluster again after everything that the API server had stored
// was lost.
type declaration struct {
	Created     metav1.Time         `json:"created,omitzero"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Annotations map[string]string   `json:"annotations,omitempty"`
	Spec        v1beta2.ClusterSpec `json:"spec"`
}

// declarationOf returns the declaration of c as JSON, or nothing if it is too large for a record.
func declarationOf(c *v1beta2.EtcdCluster) string {
	text, err := json.Marshal(declaration{Created: c.CreationTimestamp, Labels: c.Labels, Annotations: c.Annotations, Spec: c.Spec})
	if err != nil || len(text) > mostDeclared {
		return ""
	}
	return string(text)
}

// RecordsDeclaration is true if the record holds what c declares now, or cannot hold it. What another release has written
// in another way, such as without a field that is false, means the same.
func RecordsDeclaration(c *v1beta2.EtcdCluster, live *corev1.ConfigMap) bool {
	text, want := live.Data[recordDeclaration], declarationOf(c)
	if text == want {
		return true
	}
	var d declaration
	if json.Unmarshal([]byte(text), &d) != nil {
		return false
	}
	again, err := json.Marshal(d)
	return err == nil && string(again) == want
}

// RecordedCluster returns the EtcdCluster that a record describes, with its UID, by which its
// members and volumes know it. The status is empty: the controller reads it again from the
// members. ErrNotDeclared is returned for a record without a declaration.
func RecordedCluster(record *corev1.ConfigMap) (*v1beta2.EtcdCluster, error) {
	text := record.Data[recordDeclaration]
	name, uid := strings.TrimSuffix(record.Name, recordSuffix), record.Data[recordClusterUID]
	if text == "" || uid == "" || name == record.Name {
		return nil, ErrNotDeclared
	}
	var d declaration
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, fmt.Errorf("the declaration in ConfigMap %s/%s is not readable: %w", record.Namespace, record.Name, err)
	}
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: record.Namespace, Name: name, UID: types.UID(uid), Generation: 1,
			CreationTimestamp: d.Created, Labels: d.Labels, Annotations: d.Annotations,
		},
		Spec: d.Spec,
	}, nil
}

// IsRecord is true for the record of any cluster.
func IsRecord(cm *corev1.ConfigMap) bool {
	return cm.Data[recordClusterUID] != "" && strings.HasSuffix(cm.Name, recordSuffix)
}
