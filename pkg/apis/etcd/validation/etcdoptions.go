// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// What etcd does with these options when it starts: it exits.
const (
	defaultHeartbeat   = 100 * time.Millisecond
	defaultElection    = time.Second
	maxElectionTimeout = 50 * time.Second
	electionHeartbeats = 5
	// minQuota catches a forgotten unit: "8" instead of "8Gi" would reject the
	// first write.
	minQuota = 1 << 20
)

func validateEtcdOptions(options *v1beta2.EtcdOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if quota := options.QuotaBackendBytes; quota != nil {
		switch at := path.Child("quotaBackendBytes"); {
		case !hasExactValue(*quota):
			errs = append(errs, validateMeasurable(*quota, at)...)
		case quota.Cmp(*resource.NewQuantity(quota.Value(), resource.BinarySI)) != 0:
			errs = append(errs, invalid(at, quota.String(), "must be a whole number of bytes, such as 8Gi"))
		case quota.Value() < minQuota:
			errs = append(errs, invalid(at, quota.String(), "must be at least 1Mi, because etcd would accept no write; a unit may be missing, such as in 8Gi"))
		}
	}
	if count := options.SnapshotCount; count != nil && *count < 1 {
		errs = append(errs, field.Invalid(path.Child("snapshotCount"), *count, "must be at least 1; leave it out for etcd's own default"))
	}
	if options.AutoCompaction != nil {
		errs = append(errs, validateAutoCompaction(options.AutoCompaction, path.Child("autoCompaction"))...)
	}
	errs = append(errs, validateElection(options, path)...)
	return append(errs, validateExtraArgs(options.ExtraArgs, path.Child("extraArgs"))...)
}

func validateAutoCompaction(compaction *v1beta2.AutoCompaction, path *field.Path) field.ErrorList {
	at := path.Child("retention")
	switch compaction.Mode {
	case v1beta2.AutoCompactionPeriodic:
		if kept, err := time.ParseDuration(compaction.Retention); err != nil || kept <= 0 {
			return field.ErrorList{invalid(at, compaction.Retention, "must be a duration with a unit, such as 1h, where mode is Periodic")}
		}
	case v1beta2.AutoCompactionRevision:
		if kept, err := strconv.ParseInt(compaction.Retention, 10, 64); err != nil || kept < 1 {
			return field.ErrorList{invalid(at, compaction.Retention, "must be a number of revisions, such as 10000, where mode is Revision")}
		}
	case "":
		return field.ErrorList{field.Required(path.Child("mode"), "choose Periodic or Revision")}
	default:
		return validateEnum(compaction.Mode, path.Child("mode"), v1beta2.AutoCompactionPeriodic, v1beta2.AutoCompactionRevision)
	}
	return nil
}

// validateElection compares the two intervals as etcd will see them, with its own
// default for the one that is left out.
func validateElection(options *v1beta2.EtcdOptions, path *field.Path) field.ErrorList {
	heartbeat, election := defaultHeartbeat, defaultElection
	var errs field.ErrorList
	if options.HeartbeatInterval != nil {
		heartbeat = options.HeartbeatInterval.Duration
		errs = append(errs, validateMilliseconds(options.HeartbeatInterval, path.Child("heartbeatInterval"))...)
	}
	at, given := path.Child("heartbeatInterval"), heartbeat
	if options.ElectionTimeout != nil {
		at = path.Child("electionTimeout")
		election = options.ElectionTimeout.Duration
		given = election
		errs = append(errs, validateMilliseconds(options.ElectionTimeout, at)...)
	}
	if len(errs) > 0 {
		return errs
	}
	// The heartbeat is compared by division: a product could overflow.
	if heartbeat > election/electionHeartbeats {
		return field.ErrorList{invalid(at, given.String(),
			"electionTimeout (%s) must be at least five times heartbeatInterval (%s); raise the one or lower the other", election, heartbeat)}
	}
	if election > maxElectionTimeout {
		return field.ErrorList{invalid(at, election.String(), "must be at most 50s, which is the most that etcd accepts")}
	}
	return nil
}

func validateMilliseconds(interval *v1beta2.Duration, path *field.Path) field.ErrorList {
	if interval.Duration <= 0 || interval.Duration%time.Millisecond != 0 {
		return field.ErrorList{invalid(path, interval.Duration.String(), "must be a positive whole number of milliseconds, such as %s", defaultHeartbeat)}
	}
	return nil
}
