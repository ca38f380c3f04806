module github.com/etcd-operator/etcd-operator/hack/release

go 1.26.0

require (
	github.com/google/go-containerregistry v0.20.6
	github.com/secure-systems-lab/go-securesystemslib v0.11.1
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/containerd/stargz-snapshotter/estargz v0.16.3 // indirect
	github.com/klauspost/compress v1.18.0 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/vbatts/tar-split v0.12.1 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/sync v0.15.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
