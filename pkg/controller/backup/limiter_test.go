// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestShareOfANamespace: the backups of one namespace, and Jobs that it forges for one of its EtcdBackups, leave places
// for the backups of others.
func TestShareOfANamespace(t *testing.T) {
	t.Parallel()
	l, now := newLimiter(4, 2), time.Unix(0, 0)
	start := func(namespace, name string) string {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		var running []activeJob
		for i := range 100 {
			running = append(running, activeJob{
				name:   types.NamespacedName{Namespace: "forger", Name: strconv.Itoa(i)},
				source: types.NamespacedName{Namespace: "forger", Name: "c"},
			})
		}
		if why := l.acquire(key, key, key, now, running); why != nil {
			return why.Message
		}
		return ""
	}
	for _, step := range []struct{ namespace, name, waits string }{
		{"forger", "other", "2 backups run in namespace forger"},
		{"honest", "a", ""},
		{"honest", "b", ""},
		{"honest", "c", "2 backups run in namespace honest"},
		{"third", "a", "4 backups run"},
	} {
		if got := start(step.namespace, step.name); (got == "") != (step.waits == "") || !strings.HasPrefix(got, step.waits) {
			t.Errorf("%s/%s: %q, want %q", step.namespace, step.name, got, step.waits)
		}
	}
}
