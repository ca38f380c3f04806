// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/abs"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/file"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/gcs"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/oss"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/s3"
)

// caFile is the entry of the secret with the store's CA.
const caFile = "ca.crt"

// openStore opens the store of a request.
func openStore(ctx context.Context, s *agent.Store, stall time.Duration) (objectstore.Store, error) {
	if s.Type == v1beta2.BackupStorageTypePersistentVolumeClaim {
		return file.New(s.VolumeDir)
	}
	config := objectstore.TransportConfig{InsecureSkipVerify: s.InsecureSkipTLSVerify, Stall: stall}
	if s.CADir != "" {
		ca, err := os.ReadFile(filepath.Join(s.CADir, caFile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: the Secret in %s must have the entry %s", objectstore.ErrCredentials, s.Field("caSecret"), caFile)
		}
		if err != nil {
			return nil, err
		}
		config.CA = ca
	}
	transport, err := objectstore.NewTransport(config)
	if err != nil {
		return nil, fmt.Errorf("the Secret in %s: %w", s.Field("caSecret"), err)
	}
	ofCloud := v1beta2.IsCloudEndpoint(s.Type, s.Endpoint)
	switch s.Type {
	case v1beta2.BackupStorageTypeS3:
		return s3.New(ctx, s3.Config{
			Bucket: s.Bucket, Endpoint: s.Endpoint, Region: s.Region, ForcePathStyle: s.ForcePathStyle,
			ServerSideEncryption: s.ServerSideEncryption, KMSKeyID: s.KMSKeyID, StorageClass: s.StorageClass, CredentialsDir: s.CredentialsDir, Transport: transport,
		})
	case v1beta2.BackupStorageTypeABS:
		return abs.New(abs.Config{Container: s.Bucket, Endpoint: s.Endpoint, AccessTier: s.StorageClass, EndpointOfCloud: ofCloud, CredentialsDir: s.CredentialsDir, Transport: transport})
	case v1beta2.BackupStorageTypeGCS:
		return gcs.New(ctx, gcs.Config{Bucket: s.Bucket, Endpoint: s.Endpoint, StorageClass: s.StorageClass, EndpointOfCloud: ofCloud, CredentialsDir: s.CredentialsDir, Transport: transport})
	case v1beta2.BackupStorageTypeOSS:
		return oss.New(oss.Config{Bucket: s.Bucket, Endpoint: s.Endpoint, CredentialsDir: s.CredentialsDir, Transport: transport})
	default:
		return nil, fmt.Errorf("%w store: type %q is unknown", agent.ErrInvalid, s.Type)
	}
}
