// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdadapter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

const (
	// tellTimeout bounds a notice with all its attempts. After a second the kubelet has said the same.
	tellTimeout = time.Second
	// tellPause is the time between two attempts. A container that has just started may not listen
	// yet, and a network plugin may let connections in a moment later.
	tellPause = 50 * time.Millisecond
	// tellAtOnce limits how many notices are sent at the same time. The kubelet tells the others.
	tellAtOnce = 64
)

// Launchers implements cluster.Launchers over HTTP. Its key lives as long as the process: to
// launchers in pods of another controller it says nothing.
type Launchers struct {
	private ed25519.PrivateKey
	public  string
	client  *http.Client
	// telling limits the notices that are sent at the same time.
	telling *share.Limiter
}

// NewLaunchers returns Launchers with a new key.
func NewLaunchers(divide func(total int) share.Places) (*Launchers, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make the key of notices: %w", err)
	}
	return &Launchers{
		private: private,
		public:  notice.Encode(public),
		client: &http.Client{
			// A pod has an address of the cluster, which no proxy serves.
			Transport: &http.Transport{DisableKeepAlives: true},
			// The containers of a pod are not trusted to say what the controller requests.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		telling: share.NewLimiter(divide(tellAtOnce)),
	}, nil
}

// Key implements cluster.Launchers.
func (l *Launchers) Key() string { return l.public }

// Tell implements cluster.Launchers.
func (l *Launchers) Tell(ctx context.Context, pod *corev1.Pod, initialCluster string) {
	address := l.address(pod)
	if address == "" {
		return
	}
	release, lack := l.telling.Acquire(pod.Namespace)
	if lack != share.Nothing {
		return
	}
	n := notice.Sign(l.private, string(pod.UID), initialCluster)
	// The reconcile does not wait for it, and its end does not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	go func() {
		defer func() { cancel(); release() }()
		if err := l.send(ctx, address, n); err != nil {
			klog.FromContext(ctx).V(2).Info("The launcher of a new member was not told; the kubelet will tell it", "pod", klog.KObj(pod), "err", err)
		}
	}()
}

// address returns where the launcher of a pod takes notices; empty if it takes none of this
// controller.
func (l *Launchers) address(pod *corev1.Pod) string {
	port := resources.NoticePort(pod)
	if port == 0 || pod.Status.PodIP == "" || pod.Annotations[resources.AnnotationNoticeKey] != l.public {
		return ""
	}
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))
}

// errRejected means that what responds at the address does not heed the notice: a launcher that
// does not believe it, or etcd, which has started meanwhile.
var errRejected = errors.New("it rejects the notice")

// send repeats a notice until it has a response or ctx ends.
func (l *Launchers) send(ctx context.Context, address string, n notice.Notice) error {
	for {
		err := l.post(ctx, address, n)
		if err == nil || errors.Is(err, errRejected) {
			return err
		}
		timer := time.NewTimer(tellPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

func (l *Launchers) post(ctx context.Context, address string, n notice.Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode the notice: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+notice.Path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell the launcher: %w", err)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return fmt.Errorf("tell the launcher: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("tell the launcher: %w: status %d", errRejected, response.StatusCode)
	}
	return nil
}
