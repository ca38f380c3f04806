// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

// Command local runs a Kubernetes cluster out of Linux processes and namespaces.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "local: the local cluster consists of Linux namespaces, and this is %s: run it in a Linux virtual machine\n", runtime.GOOS)
	os.Exit(1)
}
