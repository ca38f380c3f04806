// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"fmt"
	"path"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/storage"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Found is what the records of a Kubernetes cluster describe.
type Found struct {
	Clusters []*v1beta2.EtcdCluster
	// Incomplete are the errors of the records from which no EtcdCluster can be made, each
	// with the namespace and the name of the record.
	Incomplete []error
	// Invalid are the EtcdClusters that the API would not accept. A tenant can write a record, so it may not
	// be the controller's. It may also be of a cluster from before a rule, whose pods Kubernetes deletes if it is left out.
	Invalid []Invalid
}

// Invalid is an EtcdCluster that the API would not accept, and why.
type Invalid struct {
	Cluster *v1beta2.EtcdCluster
	Err     error
}

// Find reads the records of all namespaces.
func Find(ctx context.Context, kube kubernetes.Interface) (Found, error) {
	var found Found
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return kube.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, o)
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{LabelSelector: resources.LabelApp + "=" + resources.AppName}, func(item runtime.Object) error {
		record, is := item.(*corev1.ConfigMap)
		if !is || !resources.IsRecord(record) {
			return nil
		}
		c, err := resources.RecordedCluster(record)
		if err != nil {
			found.Incomplete = append(found.Incomplete, fmt.Errorf("%s/%s: %w", record.Namespace, record.Name, err))
			return nil
		}
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1beta2.AnnotationRebuilt, "true")
		found.Clusters = append(found.Clusters, c)
		return nil
	})
	if err != nil {
		return Found{}, fmt.Errorf("list the records, which are ConfigMaps: %w", err)
	}
	found.separateInvalid()
	return found, nil
}

// separateInvalid moves the EtcdClusters that the API would not accept. No two objects have one UID:
// a copy of a record has the UID of the original.
func (f *Found) separateInvalid() {
	of := map[types.UID]int{}
	for _, c := range f.Clusters {
		of[c.UID]++
	}
	f.Clusters = slices.DeleteFunc(f.Clusters, func(c *v1beta2.EtcdCluster) bool {
		complete := c.DeepCopy()
		v1beta2.SetObjectDefaults_EtcdCluster(complete)
		err := validation.ValidateEtcdCluster(complete).ToAggregate()
		if of[c.UID] > 1 {
			err = utilerrors.NewAggregate([]error{fmt.Errorf("%d records have the UID %s; one of them is a copy", of[c.UID], c.UID), err})
		}
		if err == nil {
			return false
		}
		f.Invalid = append(f.Invalid, Invalid{Cluster: c, Err: err})
		return true
	})
}

// Uses returns the rights that the author of an EtcdCluster needs, because it names Secrets and
// ServiceAccounts. A record does not name its author, so an administrator has to judge them.
func Uses(c *v1beta2.EtcdCluster) []string {
	var uses []string
	for _, need := range rights.NeedsOf(c, nil) {
		uses = append(uses, fmt.Sprintf("%s: %s", need.Field, need.AnyOf[0]))
	}
	return uses
}

// Save writes a snapshot of an etcd with these objects, as an API server stores them below prefix.
// directory is for the data of that etcd meanwhile, and must be empty. The file appears when it is complete.
func Save(ctx context.Context, clusters []*v1beta2.EtcdCluster, prefix, directory, file string) error {
	server, err := embeddedetcd.Start(ctx, directory)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := store(ctx, clusters, prefix, server.Endpoint()); err != nil {
		return err
	}
	return server.Save(ctx, file)
}

// store creates the objects with the storage of the API server, below its registry, which would give
// them other UIDs.
func store(ctx context.Context, clusters []*v1beta2.EtcdCluster, prefix, endpoint string) error {
	scheme, err := apiserver.NewScheme()
	if err != nil {
		return err
	}
	backend := storagebackend.NewDefaultConfig(prefix, nil)
	backend.Transport.ServerList = []string{endpoint}
	backend.CompactionInterval, backend.DBMetricPollInterval = 0, 0
	kind := v1beta2.Resource("etcdclusters")
	stores := storage.NewFactory(*backend, runtime.ContentTypeProtobuf, scheme, serializer.NewCodecFactory(scheme), v1beta2.SchemeGroupVersion)
	config, err := stores.NewConfig(kind, &v1beta2.EtcdCluster{})
	if err != nil {
		return fmt.Errorf("configure the storage: %w", err)
	}
	resource := "/" + stores.ResourcePrefix(kind)
	objects, destroy, err := factory.Create(*config, func() runtime.Object { return &v1beta2.EtcdCluster{} }, func() runtime.Object { return &v1beta2.EtcdClusterList{} }, resource)
	if err != nil {
		return fmt.Errorf("connect to the storage: %w", err)
	}
	defer destroy()
	for _, c := range clusters {
		if err := objects.Create(ctx, path.Join(resource, c.Namespace, c.Name), c, &v1beta2.EtcdCluster{}, 0); err != nil {
			return fmt.Errorf("store EtcdCluster %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	return markAsUsed(ctx, prefix, endpoint)
}

// markAsUsed lets an API server start with the objects although their members exist.
func markAsUsed(ctx context.Context, prefix, endpoint string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connect to the storage: %w", err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Put(ctx, storage.InUseKey(prefix), ""); err != nil {
		return fmt.Errorf("mark the storage as used: %w", err)
	}
	return nil
}
