// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ErrManifest means that a manifest cannot be used for a migration.
var ErrManifest = errors.New("the manifest cannot be used")

// Manifest is what a file says about a migration by snapshot.
type Manifest struct {
	// Cluster is the spec of the new cluster; nil if the file has no EtcdCluster.
	Cluster *v1beta2.EtcdCluster
	// Backup is the backup location; nil if the file has no EtcdBackup.
	Backup *v1beta2.EtcdBackup
}

// ReadManifest reads a file with at most one EtcdCluster and at most one EtcdBackup.
func ReadManifest(from io.Reader) (*Manifest, error) {
	m := &Manifest{}
	documents := yaml.NewYAMLReader(bufio.NewReader(from))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		if err := m.add(text); err != nil {
			return nil, err
		}
	}
}

func (m *Manifest) add(text []byte) error {
	kind := &metav1.TypeMeta{}
	if err := sigsyaml.Unmarshal(text, kind); err != nil {
		return fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if kind.Kind == "" && kind.APIVersion == "" && isEmpty(text) {
		return nil
	}
	var into any
	switch expected := v1beta2.SchemeGroupVersion.String(); {
	case kind.APIVersion != expected:
		return fmt.Errorf("%w: apiVersion is %q, want %s", ErrManifest, kind.APIVersion, expected)
	case kind.Kind == "EtcdCluster" && m.Cluster == nil:
		m.Cluster = &v1beta2.EtcdCluster{}
		into = m.Cluster
	case kind.Kind == "EtcdBackup" && m.Backup == nil:
		m.Backup = &v1beta2.EtcdBackup{}
		into = m.Backup
	default:
		return fmt.Errorf("%w: it has one more document of kind %q; a migration takes one EtcdCluster and one EtcdBackup", ErrManifest, kind.Kind)
	}
	if err := sigsyaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrManifest, kind.Kind, err)
	}
	return nil
}

// isEmpty is true for a document without content, such as comments.
func isEmpty(text []byte) bool {
	var content any
	return sigsyaml.Unmarshal(text, &content) == nil && content == nil
}

// Location returns the backup location of the manifest.
func (m *Manifest) Location() (v1beta2.BackupSpec, error) {
	spec := *m.Backup.Spec.DeepCopy()
	switch {
	case spec.EtcdCluster != nil:
		return spec, fmt.Errorf("%w: spec.etcdCluster of the EtcdBackup is set; the source of a migration is what --endpoints names. Remove the field", ErrManifest)
	case spec.Encryption != nil:
		return spec, fmt.Errorf("%w: spec.encryption of the EtcdBackup is set; the restore would need the identities. Remove the field", ErrManifest)
	case spec.BackupPolicy != nil && (spec.BackupPolicy.Schedule != "" || spec.BackupPolicy.BackupIntervalInSecond > 0):
		return spec, fmt.Errorf("%w: the EtcdBackup is periodic; a migration makes single backups. Remove spec.backupPolicy", ErrManifest)
	}
	return spec, nil
}
