// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	nameServerPort  = 1053
	nameServerReady = 8181
	// nameServerTimeout outlasts the five seconds that CoreDNS gives etcd.
	nameServerTimeout = 10 * time.Second
	// nameServerPrefix is where the names are in etcd.
	nameServerPrefix = "/skydns/test/example/"
)

// ErrNoResponse means that a name server responded, and not with a name.
var ErrNoResponse = errors.New("the name server has no such text")

// NameServer is a CoreDNS that reads its names from an EtcdCluster through the client Service.
// Each query is one linearizable read; nothing is cached.
type NameServer struct {
	environment *Environment
	address     string
}

// NameServer starts a CoreDNS in a pod, with the image of the local Kubernetes, and returns it
// when it is ready. A Secret is required. It gives the server's files the name of the pod.
func (e *Environment) NameServer(ctx context.Context, o ConsumerOptions) (*NameServer, error) {
	image, err := e.nameServerImage(ctx)
	if err != nil {
		return nil, err
	}
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Data: map[string]string{"Corefile": corefile(o)}}
	if _, err := e.Kube.CoreV1().ConfigMaps(o.Namespace).Create(ctx, files, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create ConfigMap %s of the name server: %w", o.Name, err)
	}
	container := corev1.Container{
		Name: "coredns", Image: image, Args: []string{"-conf=" + consumerFiles + "/Corefile"},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/ready", Port: intstr.FromInt32(nameServerReady),
		}}},
	}
	pod := restrictedPod(o, container, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: o.Name},
	}})
	address, err := e.runPod(ctx, pod)
	if err != nil {
		return nil, err
	}
	return &NameServer{environment: e, address: net.JoinHostPort(address, fmt.Sprint(nameServerPort))}, nil
}

// nameServerImage returns the image that the DNS of the local Kubernetes runs.
func (e *Environment) nameServerImage(ctx context.Context) (string, error) {
	var dns *appsv1.Deployment
	dns, err := e.Kube.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the Deployment of CoreDNS: %w", err)
	}
	return dns.Spec.Template.Spec.Containers[0].Image, nil
}

func corefile(o ConsumerOptions) string {
	return fmt.Sprintf(`example.test:%d {
  errors
  ready :%d
  etcd {
    path /skydns
    endpoint https://%s-client.%s.svc:2379
    tls /etc/etcd/tls.crt /etc/etcd/tls.key /etc/etcd/ca.crt
  }
}
`, nameServerPort, nameServerReady, o.Cluster, o.Namespace)
}

// Text asks for the text of a name below example.test. It asks once, over TCP.
func (s *NameServer) Text(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nameServerTimeout)
	defer cancel()
	query, err := textQuery(name + ".example.test.")
	if err != nil {
		return "", err
	}
	connection, err := s.environment.Dial(ctx, "tcp", s.address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if deadline, set := ctx.Deadline(); set {
		if err := connection.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := connection.Write(query); err != nil {
		return "", err
	}
	var size uint16
	if err := binary.Read(connection, binary.BigEndian, &size); err != nil {
		return "", fmt.Errorf("read a response: %w", err)
	}
	response := make([]byte, size)
	if _, err := io.ReadFull(connection, response); err != nil {
		return "", fmt.Errorf("read a response: %w", err)
	}
	return textResponse(response)
}

// textQuery returns a query with its length before it, as DNS over TCP asks for.
func textQuery(name string) ([]byte, error) {
	qname, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 1},
		Questions: []dnsmessage.Question{{Name: qname, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET}},
	}
	packed, err := message.AppendPack(make([]byte, 2))
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(packed, uint16(len(packed)-2))
	return packed, nil
}

func textResponse(packed []byte) (string, error) {
	var message dnsmessage.Message
	if err := message.Unpack(packed); err != nil {
		return "", fmt.Errorf("read a response: %w", err)
	}
	for _, a := range message.Answers {
		if text, is := a.Body.(*dnsmessage.TXTResource); is {
			return strings.Join(text.TXT, ""), nil
		}
	}
	return "", fmt.Errorf("%w: %v", ErrNoResponse, message.RCode)
}
