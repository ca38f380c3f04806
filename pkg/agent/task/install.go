// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// programMode lets every user of a pod run it.
const programMode = 0o755

// Install copies a program into a directory, under the same name. A copy that is cut
// short does not have the name.
func Install(program, dir string) error {
	source, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	defer func() { _ = source.Close() }()
	goal := filepath.Join(dir, filepath.Base(program))
	partial, err := os.CreateTemp(dir, filepath.Base(program)+".*")
	if err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	_, err = io.Copy(partial, source)
	if err == nil {
		err = partial.Chmod(programMode)
	}
	if err = errors.Join(err, partial.Close()); err == nil {
		err = os.Rename(partial.Name(), goal)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("installing: %w", err), ignoreMissing(os.Remove(partial.Name())))
	}
	return nil
}
