// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

var (
	// errUnsupported: the target cannot take this backup.
	errUnsupported = errors.New("unsupported")
	// errNoBackup: the key names none.
	errNoBackup = errors.New("there is no such backup")
	// errInTheWay: something that is not ours would be overwritten.
	errInTheWay = errors.New("it is in the way")
	// errKept: a stored backup would be replaced by a snapshot that may be worse.
	errKept = errors.New("the stored backup is kept")
	// errPublished: what clients have written since would be lost without an error.
	errPublished = errors.New("clients have written to this member, and its disk was lost; another member must replace it, or restore a backup of the cluster")
	// errInUse: an etcd runs on the data.
	errInUse = errors.New("an etcd runs on it")
	// errUnconfirmed is the warning of a backup that must not push out others.
	errUnconfirmed = errors.New("no quorum confirmed that the member has every write, so no expired backup was deleted; the next backup of a cluster with a quorum deletes them")
	// errDataDiffers is the warning of a backup that may have wrong data.
	errDataDiffers = errors.New("etcd reports that the data of its members differs (alarm CORRUPT), so no expired backup was deleted. " +
		"Replace the member that differs as docs/how-to/corrupt-member.md says, and disarm the alarm. The next backup then deletes expired backups")
	// errSecret: a mounted secret other than the store's cannot be used.
	errSecret = errors.New("unusable secret")
)

// timeoutError is the cause of a context that ended after the attempt's time-out.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the attempt took longer than its time-out of %s", e.after)
}

// classes maps errors, the most telling first.
var classes = []struct {
	err   error
	class agent.ErrorClass
}{
	{agent.ErrInvalid, agent.ClassRequest},
	{objectstore.ErrCredentials, agent.ClassCredentials},
	{errSecret, agent.ClassCredentials},
	{snapshot.ErrEncrypted, agent.ClassCredentials},
	{snapshot.ErrNotEncrypted, agent.ClassCorrupt},
	{errUnsupported, agent.ClassUnsupported},
	{manifest.ErrNewer, agent.ClassUnsupported},
	{errInTheWay, agent.ClassExists},
	{errKept, agent.ClassExists},
	{errInUse, agent.ClassExists},
	{objectstore.ErrExists, agent.ClassExists},
	{objectstore.ErrNoBucket, agent.ClassNoBucket},
	{errNoBackup, agent.ClassNotFound},
	{objectstore.ErrDenied, agent.ClassStoreDenied},
	{objectstore.ErrUnreadable, agent.ClassStoreDenied},
	{objectstore.ErrRegion, agent.ClassStoreDenied},
	{objectstore.ErrNoSpace, agent.ClassNoSpace},
	{syscall.ENOSPC, agent.ClassNoSpace},
	{syscall.EDQUOT, agent.ClassNoSpace},
	{objectstore.ErrStalled, agent.ClassStalled},
	{etcd.ErrStalled, agent.ClassStalled},
	{etcd.ErrGrown, agent.ClassTooSlow},
	{objectstore.ErrDamaged, agent.ClassCorrupt},
	{etcd.ErrDenied, agent.ClassEtcdDenied},
	{snapshot.ErrCorrupt, agent.ClassCorrupt},
	{manifest.ErrInvalid, agent.ClassCorrupt},
	{objectstore.ErrNotFound, agent.ClassNotFound},
}

// isFull is true for the failure of a task that found no space.
func isFull(err error) bool {
	return errors.Is(err, objectstore.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// describe says why a task failed, for a reader and for the controller, which decides
// about another attempt.
func describe(ctx context.Context, err error) *agent.Error {
	e := &agent.Error{Class: agent.ClassInternal, Message: err.Error()}
	var timeout *timeoutError
	switch {
	case errors.As(context.Cause(ctx), &timeout):
		return &agent.Error{Class: agent.ClassStalled, Message: timeout.Error()}
	case ctx.Err() != nil:
		return &agent.Error{Class: agent.ClassCanceled, Message: "the agent received a signal to stop"}
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			e.Class = c.class
			return e
		}
	}
	var fromStore *objectstore.Error
	var fromEtcd *etcd.Error
	switch {
	case errors.As(err, &fromEtcd):
		e.Class = agent.ClassEtcd
	case errors.As(err, &fromStore):
		e.Class = agent.ClassStore
	}
	return e
}

// explainStore adds what to do about the settings of a store, whose error alone does not name the field.
func explainStore(e *agent.Error, err error, store *agent.Store) {
	var fromStore *objectstore.Error
	var certificate *tls.CertificateVerificationError
	if !errors.As(err, &fromStore) {
		return
	}
	switch {
	case e.Class == agent.ClassStoreDenied && errors.Is(err, objectstore.ErrRegion):
		e.Message += fmt.Sprintf("; set %s to the region of the bucket", store.Field("region"))
	case e.Class == agent.ClassStoreDenied && store.Type == v1beta2.BackupStorageTypePersistentVolumeClaim && errors.Is(err, fs.ErrPermission):
		e.Message += "; " + volumeRemedy(store, fromStore.Op)
	case e.Class == agent.ClassStore && errors.As(err, &certificate):
		e.Message = fmt.Sprintf("the certificate of the store is not trusted: %v; %s", certificate.Err, certificateRemedy(certificate, store))
	}
}

// volumeRemedy says what to do about files of a volume that the agent may not read or write. In the pod of a recovery
// member, the user and the groups are those of the EtcdCluster.
func volumeRemedy(store *agent.Store, op string) string {
	groups, err := os.Getgroups()
	if err != nil {
		groups = nil
	}
	groups = append(groups, os.Getegid())
	slices.Sort(groups)
	remedy := fmt.Sprintf("this pod runs as user %d with groups %d: let one of these groups use the files of PVC %s. "+
		"If a restore reads them, add the group of the files to spec.pod.securityContext.supplementalGroups of the EtcdCluster", os.Geteuid(), slices.Compact(groups), store.Bucket)
	if op == "list" {
		remedy += fmt.Sprintf(". If the directory holds no backups, set %s to the directory that does", store.Field("path"))
	}
	return remedy
}

// certificateRemedy says what to do about a store whose certificate is not good.
func certificateRemedy(certificate *tls.CertificateVerificationError, store *agent.Store) string {
	var host x509.HostnameError
	switch {
	case errors.As(certificate.Err, &host) && store.Type == v1beta2.BackupStorageTypeS3 && !store.ForcePathStyle && strings.HasPrefix(host.Host, store.Bucket+"."):
		return fmt.Sprintf("set %s: true, which addresses the bucket by the path and not by the host", store.Field("forcePathStyle"))
	case errors.As(certificate.Err, &host):
		return fmt.Sprintf("%s must name a host that the certificate is good for", store.Field("endpoint"))
	case store.CADir != "":
		return fmt.Sprintf("the store's certificate must be signed by the ca.crt of the Secret in %s, and be good for the host of the endpoint", store.Field("caSecret"))
	default:
		return fmt.Sprintf("name the Secret with the store's CA, as ca.crt, in %s", store.Field("caSecret"))
	}
}
