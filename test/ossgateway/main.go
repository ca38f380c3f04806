// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ossgateway is what stands in for Alibaba's store on the local Kubernetes: it
// serves the native protocol before an S3 server. The environment has the access key,
// which clients of both name: KEY_ID and KEY_SECRET.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest/ossgateway"
)

const headerTimeout = 30 * time.Second

func main() {
	listen := flag.String("listen", ":8080", "address to serve")
	backend := flag.String("backend", "http://127.0.0.1:7070", "endpoint of the S3 server")
	cert := flag.String("cert", "", "file with the certificate of the server; empty: no TLS")
	key := flag.String("key", "", "file with the key of the certificate")
	flag.Parse()
	if err := run(*listen, *backend, *cert, *key); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(listen, backend, cert, key string) error {
	to, err := url.Parse(backend)
	if err != nil {
		return fmt.Errorf("--backend: %w", err)
	}
	server := &http.Server{
		Addr: listen, ReadHeaderTimeout: headerTimeout,
		Handler: ossgateway.New(to, os.Getenv("KEY_ID"), os.Getenv("KEY_SECRET")),
	}
	if cert != "" {
		return server.ListenAndServeTLS(cert, key)
	}
	return server.ListenAndServe()
}
