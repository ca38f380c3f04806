// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// minTTL leaves clients that follow a backup the time to read its outcome.
	minTTL = time.Minute
	// The list of held snapshots is a part of the arguments of a Job, which are limited by the kernel.
	maxHeldSnapshots  = 32
	maxSnapshotLength = 1024
)

// validateKeeping checks what says how long a backup is kept.
func validateKeeping(spec *v1beta2.BackupSpec, path *field.Path) field.ErrorList {
	errs := validateTTL(spec.TTL, path.Child("ttl"))
	if spec.TTL != nil && spec.IsPeriodic() {
		errs = append(errs, forbidden(path.Child("ttl"), "may not be set on a periodic backup, which never ends; set backupPolicy.maxAge, or make single backups"))
	}
	at := path.Child("heldSnapshots")
	if len(spec.HeldSnapshots) == 0 {
		return errs
	}
	if !spec.IsPeriodic() {
		errs = append(errs, forbidden(at, "may not be set on a single backup, which has one snapshot; set hold"))
	}
	if len(spec.HeldSnapshots) > maxHeldSnapshots {
		return append(errs, field.TooMany(at, len(spec.HeldSnapshots), maxHeldSnapshots))
	}
	for i, uri := range spec.HeldSnapshots {
		scheme, place, found := strings.Cut(uri, "://")
		switch {
		case len(uri) > maxSnapshotLength:
			errs = append(errs, field.TooLong(at.Index(i), "", maxSnapshotLength))
		case !found || scheme == "" || place == "":
			errs = append(errs, invalid(at.Index(i), uri, "must be the URI of a snapshot, as status.uri or status.history names it"))
		case slices.Contains(spec.HeldSnapshots[:i], uri):
			errs = append(errs, field.Duplicate(at.Index(i), echo(uri)))
		}
	}
	return errs
}

func validateTTL(ttl *v1beta2.Duration, path *field.Path) field.ErrorList {
	if ttl != nil && ttl.Duration < minTTL {
		return field.ErrorList{invalid(path, ttl.Duration.String(), "must be at least %s; leave it out to keep the EtcdBackup", minTTL)}
	}
	return nil
}

// keepingWarnings names what keeps nothing, or keeps it longer than another field says. A status without history,
// as that of a new object, tells of no snapshot.
func keepingWarnings(backup *v1beta2.EtcdBackup, path *field.Path) []string {
	var warnings []string
	if backup.IsHeld() && backup.Spec.TTL != nil {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect while hold is true", path.Child("ttl")))
	}
	if len(backup.Status.History) == 0 {
		return warnings
	}
	for i, uri := range backup.Spec.HeldSnapshots {
		listed := func(r v1beta2.BackupRecord) bool { return r.Succeeded && r.URI == uri }
		if uri != backup.Status.URI && !slices.ContainsFunc(backup.Status.History, listed) {
			warnings = append(warnings, fmt.Sprintf("%s: status.history lists no such snapshot, so that nothing may be held; compare the URI", path.Child("heldSnapshots").Index(i)))
		}
	}
	return warnings
}

// ReleasedFromEtcdBackup warns of an update without snapshots that the stored object holds. A client that does not know
// the field sends such an update.
func ReleasedFromEtcdBackup(newBackup, oldBackup *v1beta2.EtcdBackup) []string {
	if len(oldBackup.Spec.HeldSnapshots) == 0 || len(newBackup.Spec.HeldSnapshots) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("spec.heldSnapshots: this update released %d snapshots, which the retention may delete from now on; set the field again to keep them",
		len(oldBackup.Spec.HeldSnapshots))}
}
