// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// TestStoreErrorsNameTheField: the message of an error that a setting causes says which one.
func TestStoreErrorsNameTheField(t *testing.T) {
	t.Parallel()
	s3 := agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "backups"}
	withCA, withPath, azure := s3, s3, agent.Store{Type: v1beta2.BackupStorageTypeABS, Bucket: "backups"}
	volume := agent.Store{Type: v1beta2.BackupStorageTypePersistentVolumeClaim, Bucket: "backups"}
	withCA.CADir, withPath.ForcePathStyle = "/ca", true
	certificate := func(cause error) error {
		return &objectstore.Error{Op: "get", Key: "k", Cause: &tls.CertificateVerificationError{Err: cause}}
	}
	byHost := certificate(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "backups.store.example.com"})
	for name, test := range map[string]struct {
		err    error
		store  agent.Store
		class  agent.ErrorClass
		remedy string
	}{
		"region":                    {&objectstore.Error{Op: "get", Key: "k", Kind: objectstore.ErrRegion}, s3, agent.ClassStoreDenied, "set s3.region to the region of the bucket"},
		"file of another group":     {&objectstore.Error{Op: "get", Key: "k", Kind: objectstore.ErrDenied, Cause: fs.ErrPermission}, volume, agent.ClassStoreDenied, "let one of these groups use the files of PVC backups"},
		"directory of others":       {&objectstore.Error{Op: "list", Kind: objectstore.ErrDenied, Cause: fs.ErrPermission}, volume, agent.ClassStoreDenied, "set persistentVolumeClaim.path to the directory that does"},
		"bucket in the host":        {byHost, s3, agent.ClassStore, "set s3.forcePathStyle: true"},
		"bucket in the host, CA":    {byHost, withCA, agent.ClassStore, "set s3.forcePathStyle: true"},
		"host with path style":      {byHost, withPath, agent.ClassStore, "s3.endpoint must name a host"},
		"host of another protocol":  {byHost, azure, agent.ClassStore, "abs.endpoint must name a host"},
		"unknown CA":                {certificate(x509.UnknownAuthorityError{}), s3, agent.ClassStore, "in s3.caSecret"},
		"unknown CA, CA is another": {certificate(x509.UnknownAuthorityError{}), withCA, agent.ClassStore, "must be signed by the ca.crt of the Secret in s3.caSecret"},
	} {
		e := describe(t.Context(), test.err)
		explainStore(e, test.err, &test.store)
		if e.Class != test.class || !strings.Contains(e.Message, test.remedy) {
			t.Errorf("%s: %v, want %s with %q", name, e, test.class, test.remedy)
		}
	}
}
