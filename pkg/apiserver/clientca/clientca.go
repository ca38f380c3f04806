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
	// The kube-apiserver publishes the CAs of client certificates in this ConfigMap.
	configMapName = "extension-apiserver-authentication"
	// Keys of that ConfigMap.
	clientKey = "client-ca-file"
	proxyKey  = "requestheader-client-ca-file"

	pollInterval = 20 * time.Millisecond
	// logInterval is the number of polls between two log lines.
	logInterval = 250
)

// Keys returns the keys of the ConfigMap whose CAs the server uses. The arguments tell which CAs
// come from files instead.
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

// Start runs the controller that loads the CAs of serving, until the context ends. It returns
// when all CAs in the ConfigMap under the keys are loaded. It also makes serving list no CAs to
// clients: a client has one certificate, and does not send it if an outdated list lacks its CA.
func Start(ctx context.Context, serving *genericapiserver.SecureServingInfo, kube kubernetes.Interface, keys []string) error {
	loaded := serving.ClientCA
	if loaded == nil {
		return nil
	}
	serving.ClientCA = noAcceptableCAs{name: loaded.Name()}
	if controller, ok := loaded.(dynamiccertificates.ControllerRunner); ok {
		if err := controller.RunOnce(ctx); err != nil {
			return fmt.Errorf("load the CAs of client certificates: %w", err)
		}
		go controller.Run(ctx, 1)
	}
	if len(keys) == 0 {
		return nil
	}

	polls := 0
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		key, err := findMissingKey(ctx, loaded, kube, keys)
		if polls++; polls%logInterval == 0 {
			klog.FromContext(ctx).Info("Waiting for the CAs of client certificates", "missing", key, "reason", err)
		}
		return err == nil && key == "", nil
	})
}

// findMissingKey returns a key of the ConfigMap whose content is not loaded; empty if all are.
func findMissingKey(ctx context.Context, loaded dynamiccertificates.CAContentProvider, kube kubernetes.Interface, keys []string) (string, error) {
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

// noAcceptableCAs makes a TLS listener request a client certificate without a list of CAs. The
// authenticators verify the certificate of each request.
type noAcceptableCAs struct{ name string }

var _ dynamiccertificates.CAContentProvider = noAcceptableCAs{}

// Name implements dynamiccertificates.CAContentProvider.
func (u noAcceptableCAs) Name() string { return u.name }

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (noAcceptableCAs) CurrentCABundleContent() []byte { return nil }

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (noAcceptableCAs) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }

// AddListener implements dynamiccertificates.Notifier. The content never changes.
func (noAcceptableCAs) AddListener(dynamiccertificates.Listener) {}
