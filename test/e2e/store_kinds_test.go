// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/abs"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/gcs"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/oss"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/s3"
)

// The servers: real ones for S3, Azure and Google Cloud Storage, and for Alibaba's store
// one that passes its protocol on to S3. They have the certificate of the Secret store-tls;
// versitygw is also run without, for old manifests.
const (
	versitygw = `
  - name: versitygw
    image: docker.io/versity/versitygw:v1.8.0
    command: [/versitygw, -q, --port, ":7070", posix, --sidecar, /data/meta, /data/objects]
    env:
    - {name: ROOT_ACCESS_KEY, value: admin}
    - {name: ROOT_SECRET_KEY, valueFrom: {secretKeyRef: {name: root, key: key}}}
    readinessProbe: {tcpSocket: {port: 7070}, periodSeconds: 1}
    resources: {requests: {cpu: 10m, memory: 32Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: /data/objects}, {name: meta, mountPath: /data/meta}]`
	ossGateway = `
  - name: ossgateway
    image: example.com/etcd-operator/ossgateway:test
    args: ["--listen=:8080", "--backend=http://127.0.0.1:7070", "--cert=/tls/tls.crt", "--key=/tls/tls.key"]
    env:
    - {name: KEY_ID, value: admin}
    - {name: KEY_SECRET, valueFrom: {secretKeyRef: {name: root, key: key}}}
    readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
    resources: {requests: {cpu: 10m, memory: 32Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: tls, mountPath: /tls}]`
	fakeGCS = `
  - name: fake-gcs-server
    image: docker.io/fsouza/fake-gcs-server:1.56.1
    args: [-scheme, https, -cert-location, /tls/tls.crt, -private-key-location, /tls/tls.key,
           -host, 0.0.0.0, -port, "4443", -public-host, "store:4443", -external-url, "https://store:4443",
           -backend, filesystem, -filesystem-root, /data/objects, -log-level, error]
    readinessProbe: {tcpSocket: {port: 4443}, periodSeconds: 1}
    resources: {requests: {cpu: 10m, memory: 32Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: tls, mountPath: /tls}, {name: data, mountPath: /data/objects}]`
	azurite = `
  - name: azurite
    image: mcr.microsoft.com/azure-storage/azurite:3.37.0
    args: [--cert, /tls/tls.crt, --key, /tls/tls.key, --blobHost, 0.0.0.0, --blobPort, "10000", -l, /data/objects, --silent, --skipApiVersionCheck, --disableTelemetry, --disableProductStyleUrl]
    env:
    - {name: AZURITE_ACCOUNTS, valueFrom: {secretKeyRef: {name: root, key: account}}}
    readinessProbe: {tcpSocket: {port: 10000}, periodSeconds: 1}
    resources: {requests: {cpu: 10m, memory: 64Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: tls, mountPath: /tls}, {name: data, mountPath: /data/objects}]`
)

func storeKinds() []storeKind {
	return []storeKind{secureS3Kind(), gcsKind(), absKind(), ossKind(), {
		kind: v1beta2.BackupStorageTypePersistentVolumeClaim,
		// Of the path only what comes behind the PVC is the place; there is no secret.
		source: "persistentVolumeClaim: {claimName: backups} # %s %s",
	}}
}

func s3Kind() storeKind {
	return storeKind{
		kind: v1beta2.BackupStorageTypeS3, containers: versitygw, port: 7070, checksKeys: true,
		source: `s3: {path: %s, awsSecret: %s, endpoint: "http://store:7070", forcePathStyle: true}`,
		secret: func(key string) map[string]string {
			return map[string]string{
				"credentials": "[default]\naws_access_key_id = admin\naws_secret_access_key = " + key + "\n",
				"config":      "[default]\nregion = us-east-1\n",
			}
		},
		open: func(ctx context.Context, endpoint, credentials string, transport *http.Transport) (objectstore.Store, error) {
			return s3.New(ctx, s3.Config{Bucket: storeBucket, Endpoint: endpoint, ForcePathStyle: true, CredentialsDir: credentials, Transport: transport})
		},
		makeBucket: makeS3Bucket,
	}
}

// secureS3Kind is the same over TLS, with a CA of its own.
func secureS3Kind() storeKind {
	k := s3Kind()
	k.secure = true
	k.containers = strings.Replace(strings.Replace(k.containers, "posix,", "--cert, /tls/tls.crt, --key, /tls/tls.key, posix,", 1),
		"volumeMounts: [", "volumeMounts: [{name: tls, mountPath: /tls}, ", 1)
	k.source = `s3: {path: %s, awsSecret: %s, endpoint: "https://store:7070", forcePathStyle: true, caSecret: store-ca}`
	return k
}

func s3Client(endpoint string, transport *http.Transport) *awss3.Client {
	return awss3.New(awss3.Options{
		HTTPClient:   &http.Client{Transport: transport},
		BaseEndpoint: aws.String(endpoint), UsePathStyle: true, Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "admin", SecretAccessKey: canary}, nil
		}),
	})
}

func makeS3Bucket(ctx context.Context, endpoint, bucket string, transport *http.Transport) error {
	_, err := s3Client(endpoint, transport).CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &bucket})
	return err
}

func ossKind() storeKind {
	secret := func(key string) map[string]string {
		id := "admin"
		if key != canary {
			id = "no-such-key" // the stand-in knows names only
		}
		return map[string]string{"accessKeyID": id, "accessKeySecret": key}
	}
	return storeKind{
		kind: v1beta2.BackupStorageTypeOSS, containers: versitygw + ossGateway, port: 8080, checksKeys: true, secure: true,
		source: `oss: {path: %s, ossSecret: %s, endpoint: "https://store:8080", caSecret: store-ca}`,
		secret: secret,
		open: func(_ context.Context, endpoint, credentials string, transport *http.Transport) (objectstore.Store, error) {
			return oss.New(oss.Config{Bucket: storeBucket, Endpoint: endpoint, CredentialsDir: credentials, Transport: transport})
		},
		makeBucket: func(ctx context.Context, endpoint, bucket string, transport *http.Transport) error {
			return makeS3Bucket(ctx, strings.NewReplacer("https://", "http://", ":8080", ":7070").Replace(endpoint), bucket, transport)
		},
	}
}

func gcsKind() storeKind {
	return storeKind{
		kind: v1beta2.BackupStorageTypeGCS, containers: fakeGCS, port: 4443, secure: true,
		source: `gcs: {path: %s, gcpSecret: %s, endpoint: "store:4443", caSecret: store-ca}`, // without a scheme it is https
		secret: func(key string) map[string]string { return map[string]string{"access-token": key} },
		open: func(ctx context.Context, endpoint, credentials string, transport *http.Transport) (objectstore.Store, error) {
			return gcs.New(ctx, gcs.Config{Bucket: storeBucket, Endpoint: endpoint, CredentialsDir: credentials, Transport: transport})
		},
		makeBucket: func(ctx context.Context, endpoint, bucket string, transport *http.Transport) error {
			service, err := storage.NewService(ctx, option.WithEndpoint(endpoint+"/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: transport}))
			if err != nil {
				return fmt.Errorf("make a client: %w", err)
			}
			_, err = service.Buckets.Insert("project", &storage.Bucket{Name: bucket}).Context(ctx).Do()
			return err
		},
	}
}

func absKind() storeKind {
	key := func(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }
	return storeKind{
		kind: v1beta2.BackupStorageTypeABS, containers: azurite, port: 10000, checksKeys: true, secure: true,
		source: `abs: {path: %s, absSecret: %s, endpoint: "https://store:10000", caSecret: store-ca}`,
		secret: func(k string) map[string]string {
			return map[string]string{"storage-account": "backups", "storage-key": key(k)}
		},
		open: func(_ context.Context, endpoint, credentials string, transport *http.Transport) (objectstore.Store, error) {
			return abs.New(abs.Config{Container: storeBucket, Endpoint: endpoint, CredentialsDir: credentials, Transport: transport})
		},
		makeBucket: func(ctx context.Context, endpoint, bucket string, transport *http.Transport) error {
			shared, err := container.NewSharedKeyCredential("backups", key(canary))
			if err != nil {
				return fmt.Errorf("read the key: %w", err)
			}
			client, err := container.NewClientWithSharedKeyCredential(endpoint+"/backups/"+bucket, shared, &container.ClientOptions{
				ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
			})
			if err != nil {
				return fmt.Errorf("make a client: %w", err)
			}
			_, err = client.Create(ctx, nil)
			return err
		},
	}
}
