// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// logText is what klog has written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestScrapesShareAConnection scrapes the metrics several times. Each scrape has the size of the
// storage. gRPC logs a warning for a connection to the storage that is made and closed at once; only
// the first scrape may make one. The test is not parallel: the log is that of the process.
func TestScrapesShareAConnection(t *testing.T) {
	const scrapes, timesLogged = 20, 2 // klog writes a warning to the log of each severity
	server := startStandalone(t)
	log := &logText{}
	state := klog.CaptureState()
	klog.LogToStderr(false)
	klog.SetOutput(log)
	defer state.Restore()
	for range scrapes {
		response, err := server.client.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(response, []byte("\napiserver_storage_size_bytes{")) {
			t.Fatal("a scrape lacks the size of the storage")
		}
	}
	klog.Flush()
	if warnings := strings.Count(log.String(), "createTransport failed"); warnings > timesLogged {
		t.Errorf("%d scrapes made gRPC log %d warnings, such as:\n%.500s", scrapes, warnings/timesLogged, log)
	}
}
