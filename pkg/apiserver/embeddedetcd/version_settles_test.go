// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"testing"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/api/v3/version"
	serverversion "go.etcd.io/etcd/server/v3/etcdserver/version"
	clocktesting "k8s.io/utils/clock/testing"
)

// versions is an etcd whose monitor has read the version of the cluster before the downgrade. It raises that of the
// storage once, some time after that was lowered.
type versions struct {
	serverversion.Server // what the downgrade does not call

	clock            *clocktesting.FakeClock
	downgrade        *serverversion.DowngradeInfo
	cluster, storage semver.Version
	raiseAt          time.Time
}

func (v *versions) GetDowngradeInfo() *serverversion.DowngradeInfo   { return v.downgrade }
func (v *versions) GetMembersVersions() map[string]*version.Versions { return nil }
func (v *versions) GetClusterVersion() *semver.Version               { return &v.cluster }
func (v *versions) UpdateClusterVersion(to string)                   { v.cluster = *semver.New(to) }

func (v *versions) DowngradeEnable(context.Context, *semver.Version) error {
	v.downgrade = &serverversion.DowngradeInfo{Enabled: true, TargetVersion: storageVersion.String()}
	return nil
}

func (v *versions) GetStorageVersion() *semver.Version {
	if !v.raiseAt.IsZero() && !v.clock.Now().Before(v.raiseAt) {
		v.storage, v.raiseAt = semver.Version{Major: 3, Minor: 7}, time.Time{}
	}
	storage := v.storage
	return &storage
}

func (v *versions) UpdateStorageVersion(to semver.Version) error {
	v.storage = to
	return nil
}

// await returns how long the start waits by the clock of the test.
func (v *versions) await(t *testing.T) time.Duration {
	t.Helper()
	done, began := make(chan error, 1), v.clock.Now()
	go func() { done <- awaitStorageVersion(t.Context(), v, nil, v.clock) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return v.clock.Since(began)
		default:
			if v.clock.HasWaiters() {
				v.clock.Step(downgradePoll)
			}
		}
	}
}

// TestStorageVersionSettles: a storage that etcd raises again after it was lowered is noticed, and a directory that
// stays as it is delays no start.
func TestStorageVersionSettles(t *testing.T) {
	t.Parallel()
	c, newer := clocktesting.NewFakeClock(time.Now()), semver.Version{Major: 3, Minor: 7}
	v := &versions{clock: c, cluster: newer, storage: newer, raiseAt: c.Now().Add(monitorInterval - time.Second)}
	if waited := v.await(t); v.storage != storageVersion || waited < 2*monitorInterval-time.Second {
		t.Errorf("the server serves with a storage of %s after %s", v.storage, waited)
	}
	if waited := v.await(t); waited != 0 {
		t.Errorf("a start that changes nothing waits %s", waited)
	}
	v.storage = newer
	if waited := v.await(t); waited < monitorInterval {
		t.Errorf("a storage that was raised before the start is trusted after %s", waited)
	}
}
