// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is the program that holds a pod's namespaces open: it waits to be
// told to end, and reaps whatever is left to it when a pod shares its processes.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
}
