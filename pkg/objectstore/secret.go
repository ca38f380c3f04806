// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSecretEntry bounds an entry of a secret, in bytes; Kubernetes allows no more.
const maxSecretEntry = 1 << 20

// ReadSecret reads entries of a mounted secret, without white space around them.
// Those that are required must be there and not be empty. The error matches
// ErrCredentials and holds nothing of the content.
func ReadSecret(dir string, required []string, optional ...string) (map[string]string, error) {
	secret := map[string]string{}
	for i, name := range append(append([]string{}, required...), optional...) {
		value, err := readEntry(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i >= len(required):
		case err != nil:
			return nil, fmt.Errorf("%w: reading the secret's entry %s: %w", ErrCredentials, name, err)
		case value == "" && i < len(required):
			return nil, fmt.Errorf("%w: the secret's entry %s is empty", ErrCredentials, name)
		default:
			secret[name] = value
		}
	}
	return secret, nil
}

func readEntry(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxSecretEntry {
		return "", fmt.Errorf("it has more than %d bytes", maxSecretEntry)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(raw)), nil
}
