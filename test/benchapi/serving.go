// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/scheme"
)

// Formats of bodies.
const (
	formatJSON     = "JSON"
	formatProtobuf = "protobuf"
	formatTable    = "Table"
)

// Names of the servings, in the order of the columns.
const (
	servingCRD        = "CRD"
	servingAggregated = "aggregated"
	servingDirect     = "direct"
)

// accepts is what a client accepts for each format; that of Table is what kubectl get sends.
var accepts = map[string]string{
	formatJSON:     runtime.ContentTypeJSON,
	formatProtobuf: runtime.ContentTypeProtobuf,
	formatTable:    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
}

// serving is one way to get EtcdClusters.
type serving struct {
	name, group, base string
	// protobuf is false for a CRD: the kube-apiserver serves its objects as JSON.
	protobuf bool
	// path names the processes that a request passes.
	path []string
	// etcd is the process that stores the objects.
	etcd string
	// trust is the CA of a server that is not the kube-apiserver.
	trust           []byte
	admin, ordinary *rest.Config
	clients         *clientSet
}

// servings returns the three ways. Objects of the second and the third are the same.
func (e *environment) servings(ctx context.Context) ([]*serving, error) {
	trust, err := e.serverTrust(ctx)
	if err != nil {
		return nil, err
	}
	group := v1beta2.SchemeGroupVersion.Group
	all := []*serving{
		{name: servingCRD, group: crdGroup, base: e.kubeURL,
			path: []string{kubeServer, kubeEtcd}, etcd: kubeEtcd},
		{name: servingAggregated, group: group, base: e.kubeURL, protobuf: true,
			path: []string{kubeServer, ownServer, ownEtcd}, etcd: ownEtcd},
		{name: servingDirect, group: group, base: e.serverURL, trust: trust, protobuf: true,
			path: []string{kubeServer, ownServer, ownEtcd}, etcd: ownEtcd},
	}
	if e.withoutCRD {
		all = all[1:]
	}
	for _, s := range all {
		s.admin, s.clients = s.reach(e.admin), &clientSet{}
		if s.clients.admin, err = newClient(s.admin); err != nil {
			return nil, err
		}
		if err := e.newUser(ctx, s); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// reach returns the configuration with the address of the serving.
func (s *serving) reach(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if s.trust != nil {
		config.Host, config.CAData, config.ServerName = s.base, s.trust, "localhost"
	}
	return config
}

// users counts the ordinary users.
var users atomic.Int64

// newUser gives the serving a user that no server has met. A server remembers for ten seconds
// what a user may do with an object of a name, so that the second line would measure less than
// the first one.
func (e *environment) newUser(ctx context.Context, s *serving) error {
	config, err := e.config(fmt.Sprintf("user-%d", users.Add(1)), ordinaryGroup)
	if err != nil {
		return err
	}
	s.ordinary = s.reach(config)
	if s.clients.ordinary != nil {
		s.clients.ordinary.CloseIdleConnections()
	}
	if s.clients.ordinary, err = newClient(s.ordinary); err != nil {
		return err
	}
	// The connection is made here, not in the measurement.
	_, err = count(ctx, s.clients.ordinary, call{method: http.MethodGet, url: s.url("default", "?limit=1")})
	return err
}

// url returns the address of the collection, or of one object and its subresource.
func (s *serving) url(namespace, rest string) string {
	return s.base + "/apis/" + s.group + "/v1beta2/namespaces/" + namespace + "/etcdclusters" + rest
}

// format returns the format that the serving has for a desired one.
func (s *serving) format(desired string) string {
	if desired == formatProtobuf && !s.protobuf {
		return formatJSON
	}
	return desired
}

// body encodes a cluster as the group of the serving.
func (s *serving) body(cluster *v1beta2.EtcdCluster, format string) ([]byte, error) {
	if s.format(format) == formatProtobuf {
		return runtime.Encode(protobufCodec(), cluster)
	}
	named := *cluster
	named.APIVersion, named.Kind = s.group+"/v1beta2", "EtcdCluster"
	return json.Marshal(&named)
}

func protobufCodec() runtime.Codec {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	return scheme.Codecs.CodecForVersions(serializer, serializer, v1beta2.SchemeGroupVersion, v1beta2.SchemeGroupVersion)
}

// list returns the objects of a namespace as the administrator sees them.
func (s *serving) list(ctx context.Context, namespace string) (*v1beta2.EtcdClusterList, error) {
	content, err := send(ctx, s.clients.admin, call{method: http.MethodGet, url: s.url(namespace, ""), accept: accepts[formatJSON]})
	if err != nil {
		return nil, err
	}
	list := &v1beta2.EtcdClusterList{}
	if err := json.Unmarshal(content, list); err != nil {
		return nil, fmt.Errorf("list of %s: %w", s.name, err)
	}
	return list, nil
}

// client returns the client of a user.
func (s *serving) client(user string) *http.Client {
	if user == userAdmin {
		return s.clients.admin
	}
	return s.clients.ordinary
}

// config returns the configuration of a user.
func (s *serving) config(user string) *rest.Config {
	if user == userAdmin {
		return s.admin
	}
	return s.ordinary
}
