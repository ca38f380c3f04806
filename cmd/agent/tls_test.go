// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// A store with a certificate of its own authority is trusted if the user says so, and
// not otherwise.
func TestStoreWithAnAuthorityOfItsOwn(t *testing.T) {
	member := etcdtest.New(t).Member("m0")
	backend := storetest.S3(t)
	makeBucket(t, backend, "backups")
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}})
	t.Cleanup(front.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
	for name, test := range map[string]struct {
		ca       map[string]string
		insecure bool
		class    agent.ErrorClass
	}{
		"its authority":      {ca: map[string]string{caFile: authority}},
		"no question":        {insecure: true},
		"nobody's authority": {class: agent.ClassStore},
		"no certificate":     {ca: map[string]string{caFile: "none"}, class: agent.ClassCredentials},
		"no entry":           {ca: map[string]string{"tls.crt": authority}, class: agent.ClassCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			r := &agent.Request{
				ID: name, StallTimeoutSeconds: 30, TimeoutSeconds: 60,
				Etcd: &agent.Etcd{Endpoints: []agent.Endpoint{{URL: member.ClientURL}}},
				Store: &agent.Store{
					Type: v1beta2.BackupStorageTypeS3, Bucket: "backups", Key: "k", Endpoint: front.URL, ForcePathStyle: true, InsecureSkipTLSVerify: test.insecure,
					CredentialsDir: storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey),
				},
				Save: &agent.Save{Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "n", Name: "c", UID: "u"}, Started: time.Now()},
			}
			if test.ca != nil {
				r.Store.CADir = storetest.Secret(t, test.ca)
			}
			result, said, failed := runAgent(t, agent.CommandSave, encode(t, agent.CommandSave, r))
			if failed != (test.class != "") || (failed && result.Error.Class != test.class) {
				t.Errorf("got %+v, want %q: %s", result.Error, test.class, said)
			}
			mustHideSecrets(t, said)
		})
	}
}
