// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// errCertificateRewritten means that Kubernetes takes a Certificate, and that a policy changes it back with the same write.
var errCertificateRewritten = errors.New("a policy changes what the controller writes")

// rewrittenPause is how long the controller does not write a Certificate again that a policy has changed back.
const rewrittenPause = 5 * time.Minute

// rewrittenCertificates remembers which Certificates of each cluster a policy has changed back. The zero value is ready.
// Another process writes each of them once more, and then knows the same.
type rewrittenCertificates struct {
	mu    sync.Mutex
	tried map[types.NamespacedName]map[string]rewrittenCertificate
}

// rewrittenCertificate is what still differed after the last write of a Certificate, and when that was.
type rewrittenCertificate struct {
	differs string
	at      time.Time
}

// note remembers that a Certificate still differs after it was written.
func (c *rewrittenCertificates) note(key types.NamespacedName, name, differs string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tried == nil {
		c.tried = map[types.NamespacedName]map[string]rewrittenCertificate{}
	}
	if c.tried[key] == nil {
		c.tried[key] = map[string]rewrittenCertificate{}
	}
	c.tried[key][name] = rewrittenCertificate{differs: differs, at: now}
}

// isPaused is true for a Certificate that differs as it did after its last write, which was minutes ago at most. One that
// differs otherwise was changed since, or other fields are declared. A clock that was set back ends the pause.
func (c *rewrittenCertificates) isPaused(key types.NamespacedName, name, differs string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, found := c.tried[key][name]
	age := now.Sub(last.at)
	return found && last.differs == differs && age >= 0 && age < rewrittenPause
}

// forget drops what is remembered of a cluster.
func (c *rewrittenCertificates) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tried, key)
}

// rewritten is the error for a Certificate that still differs.
func rewritten(name, differs string) error {
	return fmt.Errorf("certificate %s: %w: %s", name, errCertificateRewritten, differs)
}

// differences lists the fields of a Certificate that differ from the repaired one, with both values.
func differences(repaired, live *unstructured.Unstructured) string {
	var list []string
	appendDifferences("", repaired.Object, live.Object, &list)
	return untrusted.Text(strings.Join(list, ", "))
}

func appendDifferences(path string, want, have map[string]any, list *[]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if equality.Semantic.DeepEqual(want[key], have[key]) {
			continue
		}
		inner, nested := want[key].(map[string]any)
		below, exists := have[key].(map[string]any)
		if nested && exists {
			appendDifferences(path+key+".", inner, below, list)
			continue
		}
		*list = append(*list, fmt.Sprintf("%s%s is %v and not %v", path, key, have[key], want[key]))
	}
}
