// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagecert issues and renews the certificates of the etcd that stores the objects of
// the API servers: the members of artifacts/ha, or the etcd inside of the only API server. Three
// Secrets hold the CA, the certificate of the members and the certificate of the clients. Every
// controller that is started with --storage-service runs a manager, also a controller without the
// lease: a write that another controller was faster with fails, and is decided again. The manager
// needs no API server of this project, which starts only after its storage. It keeps the CA in memory,
// and writes it back if the Secret is lost. plan.go decides and is pure; manager.go reads and writes.
// The package may import pkg/certificates, pkg/resources and pkg/controller/metrics. Start at manager.go.
package storagecert
