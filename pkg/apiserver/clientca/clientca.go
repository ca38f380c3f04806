// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clientca

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// Where the kube-apiserver says which authorities sign clients.
	configMapName = "extension-apiserver-authentication"
	// Keys of that ConfigMap.
	clientKey = "client-ca-file"
	proxyKey  = "requestheader-client-ca-file"

	pollInterval = 20 * time.Millisecond
	// logInterval is how many polls pass between two lines of the log.
	logInterval = 250
)

// Keys returns which authorities come from the cluster, given which ones come from
// files.
func Keys(clientFile, proxyFile bool) []string {
	var keys []string
	if !clientFile {
		keys = append(keys, clientKey)
	}
	if !proxyFile {
		keys = append(keys, proxyKey)
	}
	return keys
}

// Start runs what loads the authorities of serving, until the context ends, and
// returns when all that the cluster names under the keys are loaded. From then on
// serving gives no hint which authorities it knows: a client has one certificate to
// show, and a hint that is behind keeps it from showing it.
func Start(ctx context.Context, serving *genericapiserver.SecureServingInfo, kube kubernetes.Interface, keys []string) error {
	loaded := serving.ClientCA
	if loaded == nil {
		return nil
	}
	serving.ClientCA = unhinted{name: loaded.Name()}
	if controller, ok := loaded.(dynamiccertificates.ControllerRunner); ok {
		if err := controller.RunOnce(ctx); err != nil {
			return fmt.Errorf("authorities of client certificates: %w", err)
		}
		go controller.Run(ctx, 1)
	}
	if len(keys) == 0 {
		return nil
	}

	polls := 0
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		key, err := firstMissing(ctx, loaded, kube, keys)
		if polls++; polls%logInterval == 0 {
			klog.FromContext(ctx).Info("Waiting for the authorities of client certificates", "missing", key, "reason", err)
		}
		return err == nil && key == "", nil
	})
}

// firstMissing returns a key of the ConfigMap whose content is not loaded, or nothing.
func firstMissing(ctx context.Context, loaded dynamiccertificates.CAContentProvider, kube kubernetes.Interface, keys []string) (string, error) {
	authentication, err := kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, configMapName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	content := loaded.CurrentCABundleContent()
	for _, key := range keys {
		if want := bytes.TrimSpace([]byte(authentication.Data[key])); !bytes.Contains(content, want) {
			return key, nil
		}
	}
	return "", nil
}

// unhinted makes a TLS listener ask for a client's certificate without saying which.
// The certificates are verified by the authenticators, for each request.
type unhinted struct{ name string }

var _ dynamiccertificates.CAContentProvider = unhinted{}

// Name implements dynamiccertificates.CAContentProvider.
func (u unhinted) Name() string { return u.name }

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (unhinted) CurrentCABundleContent() []byte { return nil }

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (unhinted) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }

// AddListener implements dynamiccertificates.Notifier: nothing ever changes.
func (unhinted) AddListener(dynamiccertificates.Listener) {}
