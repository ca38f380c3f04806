// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"crypto/ed25519"
	"errors"
	"testing"
)

// TestVerify: only the notice of the controller that made the pod counts, and only for that pod
// and with that content.
func TestVerify(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	const uid, cluster = "u-1", "m=http://m:2380"
	key := Encode(public)
	changed := Sign(private, uid, cluster)
	changed.InitialCluster += ",n=http://n:2380"
	for name, test := range map[string]struct {
		n        Notice
		key, uid string
		want     error
	}{
		"signed for this pod":               {Sign(private, uid, cluster), key, uid, nil},
		"files end with a line break":       {Sign(private, uid, cluster), key + "\n", uid + "\n", nil},
		"for another pod":                   {Sign(private, "u-2", cluster), key, uid, ErrForged},
		"with another key":                  {Sign(other, uid, cluster), key, uid, ErrForged},
		"changed on its way":                {changed, key, uid, ErrForged},
		"not signed":                        {Notice{InitialCluster: cluster}, key, uid, ErrForged},
		"no initial cluster":                {Sign(private, uid, ""), key, uid, ErrEmpty},
		"the pod names no key":              {Sign(private, uid, cluster), "", uid, ErrNoKey},
		"the key of the pod is cut":         {Sign(private, uid, cluster), key[:8], uid, ErrNoKey},
		"the key of the pod is not base 64": {Sign(private, uid, cluster), "?", uid, ErrNoKey},
	} {
		if err := test.n.Verify(test.key, test.uid); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}
