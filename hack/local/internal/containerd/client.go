// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/image"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

// namespace is the one in which Kubernetes' images and containers are.
const namespace = "k8s.io"

// idLabel marks an imported image with the id that its archive has: containerd
// itself lists another digest, of a manifest it makes up while importing.
const idLabel = "etcd-operator.local/id"

// pinnedLabel keeps the kubelet from deleting an image that cannot be pulled again.
const pinnedLabel = "io.cri-containerd.pinned=pinned"

// Names of the programs. All are in one directory.
const (
	daemonName = "containerd"
	clientName = "ctr"
	shimName   = "containerd-shim-runc-v2"
)

// Client drives one containerd through its socket, with the ctr command.
type Client struct {
	Socket string
	// Bin is the directory of the ctr command.
	Bin string
}

// IsReady says whether containerd responds.
func (c Client) IsReady(ctx context.Context) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func (c Client) ctr(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, clientName), append([]string{"--address", c.Socket, "--namespace", namespace}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+process.Path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// Images returns the ids of the imported images by reference; images that came
// otherwise have none.
func (c Client) Images(ctx context.Context) (map[string]string, error) {
	out, err := c.ctr(ctx, "images", "ls")
	if err != nil {
		return nil, err
	}
	return parseImages(out), nil
}

// parseImages reads the table of "ctr images ls": the reference is its first
// column, the labels are its last.
func parseImages(table string) map[string]string {
	ids := map[string]string{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "REF" {
			continue
		}
		ids[fields[0]] = ""
		for label := range strings.SplitSeq(fields[len(fields)-1], ",") {
			if id, ok := strings.CutPrefix(label, idLabel+"="); ok {
				ids[fields[0]] = id
			}
		}
	}
	return ids
}

// Import imports the images of an archive that containerd does not have yet. It
// returns the references of those it imported.
func (c Client) Import(ctx context.Context, archive string, have map[string]string) ([]string, error) {
	infos, err := image.Inspect(archive)
	if err != nil {
		return nil, err
	}
	var missing []string
	ids := map[string]string{}
	for _, info := range infos {
		for _, ref := range info.Refs {
			if have[ref] != info.ID {
				missing = append(missing, ref)
				ids[ref] = info.ID
			}
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if _, err := c.ctr(ctx, "images", "import", archive); err != nil {
		return nil, fmt.Errorf("importing %s: %w", archive, err)
	}
	for _, ref := range missing {
		if _, err := c.ctr(ctx, "images", "label", ref, idLabel+"="+ids[ref], pinnedLabel); err != nil {
			return nil, fmt.Errorf("labelling %s: %w (is the reference complete, with registry and tag?)", ref, err)
		}
	}
	return missing, nil
}
