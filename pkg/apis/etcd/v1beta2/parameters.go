// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// addParameters registers options that are read from the parameters of a URL.
func addParameters(scheme *runtime.Scheme) error {
	return scheme.AddConversionFunc((*url.Values)(nil), (*EtcdClusterProxyOptions)(nil), func(from, to any, _ conversion.Scope) error {
		values, options := from.(*url.Values), to.(*EtcdClusterProxyOptions)
		options.Path, options.Member = values.Get("path"), values.Get("member")
		return nil
	})
}
