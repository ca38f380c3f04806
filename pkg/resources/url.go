// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Ports that etcd listens on.
const (
	ClientPort  = 2379
	PeerPort    = 2380
	MetricsPort = 2381
)

// Host returns the DNS name of a member. It resolves as soon as its pod has an
// address, ready or not.
func Host(c *v1beta2.EtcdCluster, member string) string {
	domain := podPolicy(c).ClusterDomain
	if domain != "" && !strings.HasPrefix(domain, ".") {
		domain = "." + domain
	}
	return member + "." + c.Name + "." + c.Namespace + ".svc" + domain
}

// PeerURL returns the URL at which the other members reach a member.
func PeerURL(c *v1beta2.EtcdCluster, member string) string {
	return memberURL(HasPeerTLS(c), Host(c, member), PeerPort)
}

// ClientURL returns the URL at which clients reach a member.
func ClientURL(c *v1beta2.EtcdCluster, member string) string {
	return memberURL(HasClientTLS(c), Host(c, member), ClientPort)
}

// ClusterFromPeerURL returns the EtcdCluster that a peer URL names, as PeerURL makes it; ok is false if it names none.
func ClusterFromPeerURL(peerURL string) (cluster types.NamespacedName, ok bool) {
	u, err := url.Parse(peerURL)
	if err != nil {
		return types.NamespacedName{}, false
	}
	parts := strings.SplitN(u.Hostname(), ".", 5) // member, cluster, namespace, "svc", perhaps a domain
	if len(parts) < 4 || parts[3] != "svc" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: parts[2], Name: parts[1]}, true
}

// MemberFromPeerURL returns the name of the member that PeerURL gave this URL to. The
// error says why it is not such a URL.
func MemberFromPeerURL(peerURL string) (string, error) {
	u, err := url.Parse(peerURL)
	if err != nil {
		return "", fmt.Errorf("peer URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("peer URL %q: the scheme is not http or https", peerURL)
	}
	if u.Port() != strconv.Itoa(PeerPort) {
		return "", fmt.Errorf("peer URL %q: the port is not %d", peerURL, PeerPort)
	}
	// member, cluster, namespace, "svc", perhaps a domain.
	parts := strings.SplitN(u.Hostname(), ".", 5)
	if len(parts) < 4 || parts[0] == "" || parts[3] != "svc" {
		return "", fmt.Errorf("peer URL %q: the host is not the name of a member", peerURL)
	}
	return parts[0], nil
}

// listenURL is a wildcard: Go listens on IPv6 and IPv4 for 0.0.0.0 where the kernel
// has both, so the same URL serves in clusters of either family.
func listenURL(secure bool, port int) string {
	return memberURL(secure, "0.0.0.0", port)
}

func memberURL(secure bool, host string, port int) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + host + ":" + strconv.Itoa(port)
}
