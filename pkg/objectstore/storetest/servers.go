// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest/ossgateway"
)

// Credentials of the servers. The texts are what a test looks for where no secret may
// be: they are part of no name, and stand nowhere else.
const (
	AccessKey = "CANARYACCESSKEY"
	SecretKey = "canary-secret-key-3f9a"
	// Account and AccountKey are those that Azurite has built in.
	Account    = "devstoreaccount1"
	AccountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	// Token is what Google's stand-in is given; it checks none.
	Token = "canary-access-token-77b1"
)

const (
	// Ports below the range from which the kernel takes those of outgoing connections.
	firstPort = 12000
	lastPort  = 32000
	// startPatience bounds how long a server may take to listen.
	startPatience = time.Minute
)

// S3 starts versitygw and returns its endpoint. As all servers it has a certificate of CA.
func S3(t testing.TB) string {
	t.Helper()
	return "https://" + versitygw(t, "--cert", certificateFile(t), "--key", keyFile(t))
}

func versitygw(t testing.TB, options ...string) (address string) {
	t.Helper()
	// Its upload directories are files' extended attributes, which a directory in
	// memory may not have; a side directory always works.
	data, side := t.TempDir(), t.TempDir()
	return Serve(t, Program(t, "versitygw"), []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey}, func(address string) []string {
		return append(append([]string{"--quiet", "--port", address}, options...), "posix", "--sidecar", side, data)
	})
}

// GCS starts fake-gcs-server and returns its endpoint.
func GCS(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	return "https://" + Serve(t, Program(t, "fake-gcs-server"), nil, func(address string) []string {
		host, port, _ := net.SplitHostPort(address)
		return []string{
			"-scheme", "https", "-cert-location", certificateFile(t), "-private-key-location", keyFile(t),
			"-host", host, "-port", port, "-public-host", address, "-external-url", "https://" + address,
			"-backend", "filesystem", "-filesystem-root", dir, "-log-level", "error",
		}
	})
}

// OSS starts a stand-in for Alibaba's store and returns its endpoint, and that of the S3
// server behind it, which has the same buckets.
func OSS(t testing.TB) (endpoint, s3Endpoint string) {
	t.Helper()
	backend := &url.URL{Scheme: "http", Host: versitygw(t)}
	server := httptest.NewUnstartedServer(ossgateway.New(backend, AccessKey, SecretKey))
	server.TLS = ServerTLS(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, backend.String()
}

// Azure starts Azurite and returns its endpoint.
func Azure(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("node is missing; hack/object-stores.sh installs what the tests of stores need: %v", err)
	}
	script := filepath.Join(cache(t), "npm", "azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("Azurite is missing; hack/object-stores.sh installs what the tests of stores need: %v", err)
	}
	return "https://" + Serve(t, node, nil, func(address string) []string {
		host, port, _ := net.SplitHostPort(address)
		return []string{script, "--cert", certificateFile(t), "--key", keyFile(t), "--blobHost", host, "--blobPort", port, "-l", dir, "--silent", "--skipApiVersionCheck", "--disableTelemetry"}
	})
}

// cache is where programs are kept that were built once.
func cache(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("ETCD_OPERATOR_CACHE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".cache", "etcd-operator")
}

// Program returns the path of a program that was built once.
func Program(t testing.TB, name string) string {
	t.Helper()
	// There is a directory for each minor version of Kubernetes that was built.
	found, err := filepath.Glob(filepath.Join(cache(t), "bin", "current*", name))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("%s is missing in %s; hack/object-stores.sh builds what the tests of stores need", name, filepath.Join(cache(t), "bin"))
	}
	return slices.Max(found)
}

// Serve starts a server on a free port of loopback, waits until it listens and returns its
// address. It ends with the test.
func Serve(t testing.TB, program string, env []string, args func(address string) []string) string {
	t.Helper()
	const tries = 5 // another program may take the port
	var output string
	for range tries {
		address := freeAddress(t)
		var listens bool
		if listens, output = start(t, address, program, env, args(address)); listens {
			return address
		}
	}
	t.Fatalf("%s does not listen:\n%s", filepath.Base(program), output)
	return ""
}

func start(t testing.TB, address, program string, env, args []string) (listens bool, output string) {
	t.Helper()
	var out bytes.Buffer
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	command.Env = append(os.Environ(), env...)
	command.Stdout, command.Stderr = &out, &out
	// The kernel ends it if this process dies without cleaning up, or rather the
	// thread that started it: so that thread stays.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := command.Start()
		failed <- err
		if err == nil {
			_ = command.Wait()
		}
		close(ended)
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
	deadline := time.NewTimer(startPatience)
	defer deadline.Stop()
	for {
		if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address); err == nil {
			_ = conn.Close()
			return true, ""
		}
		select {
		case <-ended:
			return false, out.String()
		case <-deadline.C:
			return false, "it still runs"
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// Secret writes the entries of a secret to files, as a pod mounts them.
func Secret(t testing.TB, entries map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range entries {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// AWSSecret is the secret of S3.
func AWSSecret(t testing.TB, key, secret string) string {
	t.Helper()
	return Secret(t, map[string]string{
		"credentials": fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", key, secret),
		"config":      "[default]\nregion = us-east-1\n",
	})
}
