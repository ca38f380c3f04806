// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"sync"

	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	baseversion "k8s.io/component-base/version"
)

// emulationFloor is the oldest Kubernetes version that can be emulated. The library supports
// three versions before its own.
const emulationFloor = "1.33"

// useKubernetesVersion registers the Kubernetes version of the library, which decides the
// features and the functions of expressions. Without it the library uses the version of this
// program as a Kubernetes version, and "0.1.0" disables every feature.
var useKubernetesVersion = sync.OnceValue(func() error {
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		return err
	}
	registry := compatibility.DefaultComponentGlobalsRegistry
	registry.Reset()
	return registry.Register(basecompatibility.DefaultKubeComponent,
		basecompatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, emulationFloor, emulationFloor),
		utilfeature.DefaultMutableFeatureGate)
})

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}
