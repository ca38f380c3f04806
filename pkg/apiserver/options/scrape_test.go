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

// TestScrapesLogNothing scrapes the metrics several times. Each scrape has the size of the storage.
// A scrape that connects to the storage and disconnects at once makes gRPC log a warning. The test
// is not parallel: the log is that of the process.
func TestScrapesLogNothing(t *testing.T) {
	server := startStandalone(t)
	log := &logText{}
	state := klog.CaptureState()
	klog.LogToStderr(false)
	klog.SetOutput(log)
	defer state.Restore()
	for range 20 {
		response, err := server.client.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(response, []byte("\napiserver_storage_size_bytes{")) {
			t.Fatal("a scrape lacks the size of the storage")
		}
	}
	klog.Flush()
	if warnings := strings.Count(log.String(), "createTransport failed"); warnings > 0 {
		t.Errorf("20 scrapes made gRPC log %d warnings, such as:\n%.500s", warnings, log)
	}
}
