// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"fmt"
	"path/filepath"
	"text/template"
)

// PauseImage is the image that holds the namespaces of every pod.
const PauseImage = "etcd-operator.local/pause:1"

// Config is what differs between the runtimes of the cluster.
type Config struct {
	Root   string
	State  string
	Socket string
	// CNIConfig is the directory of the pod network's configuration; without it
	// there is no Kubernetes interface, only a store of images.
	CNIConfig string
	CNIBin    string
	Runc      string
	// Bin is the directory of containerd's own programs.
	Bin string
}

// Shim is the program that starts and keeps a pod. The configuration names its path: containerd would
// prefer the shim of a Debian package, of another version.
func (c Config) Shim() string { return filepath.Join(c.Bin, shimName) }

// restrict_oom_score_adj: runc otherwise lowers the OOM score of pause containers,
// which root may not do where it lacks CAP_SYS_RESOURCE, and then no pod starts.
var config = template.Must(template.New("containerd").Parse(`version = 4
root = "{{.Root}}"
state = "{{.State}}"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.differ.v1.erofs",
  "io.containerd.internal.v1.opt",
  "io.containerd.nri.v1.nri",
  "io.containerd.tracing.processor.v1.otlp",
{{- if not .CNIConfig}}
  "io.containerd.grpc.v1.cri",
  "io.containerd.cri.v1.images",
  "io.containerd.cri.v1.runtime",
  "io.containerd.podsandbox.controller.v1.podsandbox",
{{- end}}
]

[plugins."io.containerd.server.v1.grpc"]
  address = "{{.Socket}}"

[plugins."io.containerd.server.v1.ttrpc"]
  address = "{{.Socket}}.ttrpc"
{{- if .CNIConfig}}

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"

  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "` + PauseImage + `"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_selinux = false

  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"

    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      runtime_path = "{{.Shim}}"

      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "{{.Runc}}"

  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{{.CNIBin}}"]
    conf_dir = "{{.CNIConfig}}"
    max_conf_num = 1
{{- end}}
`))

// Render returns the configuration file.
func (c Config) Render() ([]byte, error) {
	var out bytes.Buffer
	if err := config.Execute(&out, c); err != nil {
		return nil, fmt.Errorf("writing containerd's configuration: %w", err)
	}
	return out.Bytes(), nil
}
