// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	consumerImage = "registry.k8s.io/kube-apiserver:consumer"
	consumerToken = "consumer"
	consumerPort  = 6443
	consumerUser  = 65532
	consumerFiles = "/etc/consumer"
	// consumerStart is how long a kube-apiserver may take to start.
	consumerStart = 90 * time.Second
)

// Consumer is a kube-apiserver that keeps its objects in an EtcdCluster and reaches that
// cluster through its client Service. It opens one connection for each kind of object. A
// connection stays until the member at its end closes it.
type Consumer struct {
	// Namespace that objects are written to, in the kube-apiserver.
	Namespace string
	Kube      kubernetes.Interface

	environment *Environment
	// pod is where the kube-apiserver runs.
	pod types.NamespacedName
}

// Name is the name of the pod.
func (c *Consumer) Name() string { return c.pod.Name }

// ConsumerOptions describe a Consumer.
type ConsumerOptions struct {
	Namespace string
	// Name of the pod, and of the Secret with its files.
	Name string
	// Cluster is the name of the EtcdCluster.
	Cluster string
	// Secret, if not empty, holds the client's certificate as tls.crt, tls.key and ca.crt.
	Secret string
}

// consumerLoaded makes tests that run at the same time load the image only once.
var consumerLoaded struct {
	sync.Mutex
	done bool
}

// Consumer starts a kube-apiserver in a pod and returns it when it is ready.
func (e *Environment) Consumer(ctx context.Context, o ConsumerOptions) (*Consumer, error) {
	if err := e.loadConsumer(ctx); err != nil {
		return nil, err
	}
	files, err := consumerSecret(o)
	if err != nil {
		return nil, err
	}
	if _, err := e.Kube.CoreV1().Secrets(o.Namespace).Create(ctx, files, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create Secret %s of the kube-apiserver: %w", o.Name, err)
	}
	pod := consumerPod(o)
	address, err := e.runPod(ctx, pod)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host:            "https://" + net.JoinHostPort(address, fmt.Sprint(consumerPort)),
		BearerToken:     consumerToken,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // its certificate is its own
		QPS:             -1,
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the kube-apiserver: %w", err)
	}
	return &Consumer{
		Namespace: metav1.NamespaceDefault, Kube: kube, environment: e,
		pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
	}, nil
}

// ConnectionsRefused counts the connections refused by etcd since then. After each of them
// gRPC waits for a second or longer before it tries again: that is what makes a gap.
func (c *Consumer) ConnectionsRefused(ctx context.Context, since time.Time) (int, error) {
	logs, err := c.environment.Kube.CoreV1().Pods(c.pod.Namespace).GetLogs(c.pod.Name, &corev1.PodLogOptions{
		SinceTime: ptr.To(metav1.NewTime(since)),
	}).DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the log of the kube-apiserver: %w", err)
	}
	return bytes.Count(logs, []byte("connect: connection refused")), nil
}

// loadConsumer makes the image of the kube-apiserver that the local Kubernetes itself
// runs, and loads it into the nodes.
func (e *Environment) loadConsumer(ctx context.Context) error {
	consumerLoaded.Lock()
	defer consumerLoaded.Unlock()
	if consumerLoaded.done {
		return nil
	}
	dir, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, archive := filepath.Join(e.Bin, "kube-apiserver"), filepath.Join(dir, "consumer.tar")
	_, err = e.LocalTool(ctx, "image", "--ref", consumerImage, "--out", archive, "--user", fmt.Sprint(consumerUser),
		"--entrypoint", `["/kube-apiserver"]`, program+"=/kube-apiserver")
	if err != nil {
		return fmt.Errorf("make the image of the kube-apiserver: %w", err)
	}
	if _, err := e.LocalTool(ctx, "load", archive); err != nil {
		return fmt.Errorf("load the image of the kube-apiserver: %w", err)
	}
	consumerLoaded.done = true
	return nil
}

// consumerSecret returns the files of the kube-apiserver: the token of its one user
// and the key of its service accounts.
func consumerSecret(o ConsumerOptions) (*corev1.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Data: map[string][]byte{
			"tokens.csv": []byte(consumerToken + `,admin,admin,"system:masters"` + "\n"),
			"sa.key":     pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
			"sa.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		},
	}, nil
}

func consumerArgs(o ConsumerOptions) []string {
	scheme := "http"
	var secure []string
	if o.Secret != "" {
		scheme = "https"
		secure = []string{"--etcd-cafile=/etc/etcd/ca.crt", "--etcd-certfile=/etc/etcd/tls.crt", "--etcd-keyfile=/etc/etcd/tls.key"}
	}
	return append([]string{
		fmt.Sprintf("--etcd-servers=%s://%s-client.%s.svc:2379", scheme, o.Cluster, o.Namespace),
		fmt.Sprintf("--secure-port=%d", consumerPort),
		"--cert-dir=/tmp/certificates",
		"--token-auth-file=" + consumerFiles + "/tokens.csv",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://consumer",
		"--service-account-key-file=" + consumerFiles + "/sa.pub",
		"--service-account-signing-key-file=" + consumerFiles + "/sa.key",
		"--service-cluster-ip-range=10.200.0.0/24",
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount",
	}, secure...)
}

// consumerPod returns the pod of a kube-apiserver.
func consumerPod(o ConsumerOptions) *corev1.Pod {
	return restrictedPod(o, corev1.Container{
		Name: "kube-apiserver", Image: consumerImage, ImagePullPolicy: corev1.PullNever, Args: consumerArgs(o),
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/livez", Port: intstr.FromInt32(consumerPort), Scheme: corev1.URISchemeHTTPS,
		}}},
	}, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: o.Name}})
}
