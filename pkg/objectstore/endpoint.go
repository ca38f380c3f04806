// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"fmt"
	"net/url"
	"strings"
)

// Endpoint reads the address of a store. A scheme that is missing is https. The error
// matches ErrCredentials.
func Endpoint(address string) (*url.URL, error) {
	full := address
	if !strings.Contains(full, "://") {
		full = "https://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("%w: endpoint %q is no address such as https://store.example.com:9000", ErrCredentials, address)
	}
	return u, nil
}
