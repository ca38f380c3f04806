// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"fmt"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"
)

// Save writes a snapshot to a file, which appears when it is complete.
func (s *Server) Save(ctx context.Context, file string) error {
	part := file + ".part"
	if _, err := snapshot.SaveWithVersion(ctx, zap.NewNop(), clientv3.Config{Endpoints: []string{s.Endpoint()}, Logger: zap.NewNop()}, part); err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	return os.Rename(part, file)
}
