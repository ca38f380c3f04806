// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestNameTrafficNoticesOldNames: a response that is older than what was acknowledged is wrong, one that
// nothing has written is wrong, and a response without a text is a failure.
func TestNameTrafficNoticesOldNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text    string
		wrong, failed int
	}{
		{"the last one", "5", 0, 0},
		{"sent, and not acknowledged yet", "6", 0, 0},
		{"older", "4", 1, 0},
		{"never sent", "7", 1, 0},
		{"no number", "x", 1, 0},
		{"no text", "", 0, 1},
	} {
		server := &NameServer{environment: &Environment{Local: "local"}, address: serveText(t, test.text)}
		traffic := &NameTraffic{name: "counter"}
		traffic.acknowledged.Store(5)
		traffic.sent.Store(6)
		traffic.ask(t.Context(), server)
		if r := traffic.report; r.Asked != 1 || len(r.Wrong) != test.wrong || len(r.Failures) != test.failed {
			t.Errorf("%s: %v; wrong %q, failures %v", test.name, &r, r.Wrong, r.Failures)
		}
	}
}

// serveText responds to one query over TCP: with a text, or with no record if that is empty.
func serveText(t *testing.T, text string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		var size uint16
		if binary.Read(connection, binary.BigEndian, &size) != nil {
			return
		}
		query := make([]byte, size)
		var message dnsmessage.Message
		if _, err := io.ReadFull(connection, query); err != nil || message.Unpack(query) != nil {
			return
		}
		message.Response = true
		if text != "" {
			message.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: message.Questions[0].Name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.TXTResource{TXT: []string{text}},
			}}
		}
		packed, err := message.AppendPack(make([]byte, 2))
		if err != nil {
			return
		}
		binary.BigEndian.PutUint16(packed, uint16(len(packed)-2))
		_, _ = connection.Write(packed)
	}()
	return listener.Addr().String()
}
