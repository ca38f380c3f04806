// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills the types of the group with random values, for tests that
// encode and decode them. It imports the API types of this project and nothing else of it.
package fuzzer

import (
	"time"

	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Funcs returns the functions that fill the kinds of the group. A decoder applies
// defaults, so an object without them would not come back as it went.
func Funcs(_ serializer.CodecFactory) []any {
	return []any{
		func(d *v1beta2.Duration, c randfill.Continue) {
			d.Duration = time.Duration(c.Int63()) // a text counts only with the duration that it means
		},
		func(cluster *v1beta2.EtcdCluster, c randfill.Continue) {
			c.FillNoCustom(cluster)
			v1beta2.SetObjectDefaults_EtcdCluster(cluster)
		},
		func(backup *v1beta2.EtcdBackup, c randfill.Continue) {
			c.FillNoCustom(backup)
			v1beta2.SetObjectDefaults_EtcdBackup(backup)
		},
		func(restore *v1beta2.EtcdRestore, c randfill.Continue) {
			c.FillNoCustom(restore)
			v1beta2.SetObjectDefaults_EtcdRestore(restore)
		},
		func(recovery *v1beta2.EtcdClusterRecovery, c randfill.Continue) {
			c.FillNoCustom(recovery)
			v1beta2.SetObjectDefaults_EtcdClusterRecovery(recovery)
		},
	}
}

// Source is the random source that the fuzzer of apimachinery wants.
type Source struct{ *rand.PCG }

// Int63 implements math/rand.Source.
func (s Source) Int63() int64 { return rand.New(s.PCG).Int64() } //nolint:gosec // values of tests, which a seed repeats

// Seed implements math/rand.Source.
func (s Source) Seed(seed int64) { s.PCG.Seed(uint64(seed), 1) }
