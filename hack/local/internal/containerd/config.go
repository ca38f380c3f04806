// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"fmt"
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
}

// restrict_oom_score_adj: runc otherwise lowers the OOM score of pause containers,
// which root may not do where it lacks CAP_SYS_RESOURCE, and then no pod starts.
var config = template.Must(template.New("containerd").Parse(`version = 2
root = "{{.Root}}"
state = "{{.State}}"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt",
  "io.containerd.tracing.processor.v1.otlp",
{{- if not .CNIConfig}}
  "io.containerd.grpc.v1.cri",
{{- end}}
]

[grpc]
  address = "{{.Socket}}"
{{- if .CNIConfig}}

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + PauseImage + `"
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_selinux = false

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "{{.Runc}}"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.CNIBin}}"
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
