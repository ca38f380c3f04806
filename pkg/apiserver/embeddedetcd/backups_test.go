// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/storagecert"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	systemNamespace = "etcd-operator-system"
	serverName      = "etcd-operator-apiserver.etcd-operator-system.svc"
	day             = 24 * time.Hour
)

// issued are the certificates that the controller makes for the etcd of an API server.
type issued struct {
	*testing.T

	kube    *fake.Clientset
	clock   *clocktesting.FakeClock
	manager *storagecert.Manager
}

// issueSince issues certificates at a time in the past, so that a renewal is due soon.
func issueSince(t *testing.T, ago time.Duration) *issued {
	t.Helper()
	i := &issued{T: t, kube: fake.NewClientset(), clock: clocktesting.NewFakeClock(time.Now().Add(-ago))}
	i.manager = storagecert.NewManager(storagecert.Config{
		Namespace: systemNamespace, Service: "etcd-operator-storage", EmbeddedService: "etcd-operator-apiserver",
	}, i.kube, i.clock)
	i.sync()
	return i
}

func (i *issued) sync() {
	i.Helper()
	if err := i.manager.Sync(i.Context()); err != nil {
		i.Fatal(err)
	}
}

func (i *issued) secret(suffix string) *corev1.Secret {
	i.Helper()
	secret, err := i.kube.CoreV1().Secrets(systemNamespace).Get(i.Context(), "etcd-operator-storage"+suffix, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	return secret
}

// mount writes the Secret of the server into a directory, as Kubernetes does.
func (i *issued) mount(dir string) {
	i.Helper()
	for name, data := range i.secret("-member").Data {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			i.Fatal(err)
		}
	}
}

// client returns the TLS configuration of the Job of a backup.
func (i *issued) client() *tls.Config {
	i.Helper()
	config, _, err := certificates.ClientConfig(i.secret("-client"))
	if err != nil {
		i.Fatal(err)
	}
	config.ServerName = serverName
	return config
}

// serveBackups starts an etcd that serves backups with the certificate, and returns the address.
func serveBackups(t *testing.T, certDir string) (*Server, string) {
	t.Helper()
	server := start(t, t.TempDir())
	if err := server.ServeBackups(t.Context(), "127.0.0.1:0", certDir); err != nil {
		t.Fatal(err)
	}
	return server, server.backups.listener.Addr().String()
}

// backupClient is the client of the agent.
func backupClient(t *testing.T, address string, config *tls.Config) *etcd.Client {
	t.Helper()
	pool := etcd.NewPool(etcd.PoolConfig{})
	t.Cleanup(pool.Close)
	return pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{{Name: "storage", URL: "https://" + address}}, TLS: config})
}

// connection returns a connection with the certificates of the configuration, or without TLS.
func connection(t *testing.T, address string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// takeSnapshot reads a whole snapshot as the agent does, and checks its hash.
func takeSnapshot(t *testing.T, address string, config *tls.Config) ([]byte, error) {
	t.Helper()
	client := backupClient(t, address, config)
	sources, err := client.SnapshotSources(t.Context())
	if err != nil {
		return nil, err
	}
	snapshot, err := client.Snapshot(t.Context(), sources[0], 10*time.Second)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	text, err := io.ReadAll(snapshot)
	if err != nil {
		return nil, err
	}
	database, hash := text[:len(text)-sha256.Size], text[len(text)-sha256.Size:]
	if want := sha256.Sum256(database); !bytes.Equal(hash, want[:]) {
		t.Error("the hash of the snapshot differs from the one at its end")
	}
	if !snapshot.Confirmed || snapshot.Revision == 0 {
		t.Errorf("revision %d, confirmed %t", snapshot.Revision, snapshot.Confirmed)
	}
	return database, nil
}

// TestBackupsNeedACertificate takes a snapshot with the client certificate, and tries it without one,
// with one of another CA, and without TLS. The table of docs/explanation/security.md names this test.
func TestBackupsNeedACertificate(t *testing.T) {
	t.Parallel()
	i, dir := issueSince(t, 0), t.TempDir()
	i.mount(dir)
	server, address := serveBackups(t, dir)
	const value = "an object that the snapshot must contain"
	if _, err := connect(t, server).Put(t.Context(), "key", value); err != nil {
		t.Fatal(err)
	}
	database, err := takeSnapshot(t, address, i.client())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(database, []byte(value)) {
		t.Error("the snapshot does not contain the object")
	}

	without := i.client()
	without.Certificates = nil
	other := i.client()
	other.Certificates = issueSince(t, 0).client().Certificates
	for name, config := range map[string]*tls.Config{"no certificate": without, "a certificate of another CA": other} {
		if _, err := takeSnapshot(t, address, config); err == nil {
			t.Errorf("%s: the server sent a snapshot", name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := pb.NewMaintenanceClient(connection(t, address, credentials.NewTLS(config))).Status(ctx, &pb.StatusRequest{})
		cancel()
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v, want a connection that fails", name, err)
		}
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := client.Get(ctx, "key"); err == nil {
		t.Error("the server responds without TLS")
	}
}

// TestBackupClientsOnlyRead tries with the client certificate what it must not do. The table
// of docs/explanation/security.md names this test.
func TestBackupClientsOnlyRead(t *testing.T) {
	t.Parallel()
	i, dir := issueSince(t, 0), t.TempDir()
	i.mount(dir)
	server, address := serveBackups(t, dir)
	inside := connect(t, server)
	if _, err := inside.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	conn := connection(t, address, credentials.NewTLS(i.client()))
	key, all := []byte("key"), []byte{0}
	requests := map[string]func(context.Context) error{
		"read a key": func(ctx context.Context) error {
			_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: key})
			return err
		},
		"read all keys": func(ctx context.Context) error {
			_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: all, RangeEnd: all, KeysOnly: true})
			return err
		},
		"put": func(ctx context.Context) error {
			_, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: key, Value: []byte("changed")})
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := pb.NewKVClient(conn).DeleteRange(ctx, &pb.DeleteRangeRequest{Key: key})
			return err
		},
		"transaction": func(ctx context.Context) error {
			put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: []byte("changed")}}}
			_, err := pb.NewKVClient(conn).Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put}})
			return err
		},
		"compact": func(ctx context.Context) error {
			_, err := pb.NewKVClient(conn).Compact(ctx, &pb.CompactionRequest{Revision: 1})
			return err
		},
		"raise an alarm": func(ctx context.Context) error {
			_, err := pb.NewMaintenanceClient(conn).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE})
			return err
		},
		"defragment": func(ctx context.Context) error {
			_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
			return err
		},
		"downgrade": func(ctx context.Context) error {
			_, err := pb.NewMaintenanceClient(conn).Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_ENABLE, Version: "3.5.0"})
			return err
		},
		"add a member": func(ctx context.Context) error {
			_, err := pb.NewClusterClient(conn).MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"http://evil.example.com:2380"}})
			return err
		},
		"grant a lease": func(ctx context.Context) error {
			_, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 60})
			return err
		},
		"add a user": func(ctx context.Context) error {
			_, err := pb.NewAuthClient(conn).UserAdd(ctx, &pb.AuthUserAddRequest{Name: "root", Password: "evil"})
			return err
		},
		"watch": func(ctx context.Context) error {
			stream, err := pb.NewWatchClient(conn).Watch(ctx)
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := requests[name](ctx)
		cancel()
		if code := status.Code(err); code != codes.Unimplemented && code != codes.PermissionDenied {
			t.Errorf("%s: got %v, want a rejection", name, err)
		}
	}
	response, err := inside.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != "value" || response.Header.Revision != 2 {
		t.Errorf("after the requests there is %v (%v), want the one key of before at revision 2", response, err)
	}
}

// TestBackupsFollowRenewals starts without a certificate, and renews it and its CA while the server runs.
func TestBackupsFollowRenewals(t *testing.T) {
	t.Parallel()
	i, dir := issueSince(t, 61*day), t.TempDir()
	_, address := serveBackups(t, dir)
	if _, err := takeSnapshot(t, address, i.client()); err == nil {
		t.Fatal("the server sent a snapshot without a certificate of its own")
	}
	i.mount(dir)
	first := i.client()
	if _, err := takeSnapshot(t, address, first); err != nil {
		t.Fatalf("after the certificate appeared: %v", err)
	}
	before := served(t, address, first)

	i.clock.SetTime(time.Now()) // two thirds of the life of the certificates are over
	i.sync()
	i.mount(dir)
	after := served(t, address, i.client())
	if after.Equal(before) || !after.NotAfter.After(before.NotAfter) {
		t.Errorf("after the renewal the server shows the certificate of before, valid until %v", after.NotAfter)
	}
	if _, err := takeSnapshot(t, address, first); err != nil {
		t.Errorf("the client certificate of before the renewal: %v", err)
	}

	for _, request := range []string{"rotate-ca", "drop-old-ca"} { // a request to drop is about the successor, so it follows that
		ca := i.secret("-ca")
		metav1.SetMetaDataAnnotation(&ca.ObjectMeta, "etcd.database.coreos.com/"+request, "now")
		if _, err := i.kube.CoreV1().Secrets(systemNamespace).Update(t.Context(), ca, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		i.sync()
	}
	i.mount(dir)
	if _, err := takeSnapshot(t, address, i.client()); err != nil {
		t.Errorf("after the rotation of the CA: %v", err)
	}
	removed := i.client()
	removed.Certificates = first.Certificates
	if _, err := takeSnapshot(t, address, removed); err == nil {
		t.Error("the server accepts a client of the CA that was dropped")
	}
}

// served returns the certificate that the server shows.
func served(t *testing.T, address string, config *tls.Config) *x509.Certificate {
	t.Helper()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config.Clone()}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// TestStopEndsBackups stops a server while a client reads a snapshot, and reads no further.
func TestStopEndsBackups(t *testing.T) {
	t.Parallel()
	i, dir := issueSince(t, 0), t.TempDir()
	i.mount(dir)
	server, address := serveBackups(t, dir)
	client := connect(t, server)
	for _, key := range strings.Fields("a b c d e f g h") {
		if err := put(t, client, key); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	stream, err := pb.NewMaintenanceClient(connection(t, address, credentials.NewTLS(i.client()))).Snapshot(t.Context(), &pb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("Stop waits for a client that reads no further")
	}
	if _, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address); err == nil {
		t.Error("the address is still served")
	}
}

// TestBackupAddressInUse checks that the error names the address.
func TestBackupAddressInUse(t *testing.T) {
	t.Parallel()
	_, address := serveBackups(t, t.TempDir())
	err := start(t, t.TempDir()).ServeBackups(t.Context(), address, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v, want an error that names %s", err, address)
	}
}
