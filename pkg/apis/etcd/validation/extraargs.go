// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxArgLength is far more than any flag of etcd needs.
const maxArgLength = 4096

var argPattern = regexp.MustCompile(`^--([a-z][a-z0-9-]*)(=\S*)?$`)

// typedFlags have a field of their own, which is checked.
var typedFlags = map[string]string{
	"quota-backend-bytes":       "quotaBackendBytes",
	"auto-compaction-mode":      "autoCompaction.mode",
	"auto-compaction-retention": "autoCompaction.retention",
	"snapshot-count":            "snapshotCount",
	"heartbeat-interval":        "heartbeatInterval",
	"election-timeout":          "electionTimeout",
}

const (
	ownsIdentity    = "the controller gives every member its identity and its addresses"
	ownsData        = "the data must stay on the member's volume"
	ownsCertificate = "set spec.TLS instead"
	ownsMembership  = "the controller changes the membership one step at a time and relies on it"
	endsProcess     = "etcd would not run as a member of this cluster"
)

// ownedFlags are those whose value the controller chooses, and those that would undo
// what it relies on. Each has the reason that its rejection gives.
var ownedFlags = map[string]string{
	"name":                        ownsIdentity,
	"initial-advertise-peer-urls": ownsIdentity,
	"initial-cluster":             ownsIdentity,
	"initial-cluster-state":       ownsIdentity,
	"initial-cluster-token":       ownsIdentity,
	"advertise-client-urls":       ownsIdentity,
	"data-dir":                    ownsData,
	"wal-dir":                     ownsData,
	"cert-file":                   ownsCertificate,
	"key-file":                    ownsCertificate,
	"ca-file":                     ownsCertificate,
	"trusted-ca-file":             ownsCertificate,
	"client-cert-auth":            ownsCertificate,
	"client-cert-file":            ownsCertificate,
	"client-key-file":             ownsCertificate,
	"client-crl-file":             ownsCertificate,
	"auto-tls":                    ownsCertificate,
	"peer-cert-file":              ownsCertificate,
	"peer-key-file":               ownsCertificate,
	"peer-ca-file":                ownsCertificate,
	"peer-trusted-ca-file":        ownsCertificate,
	"peer-client-cert-auth":       ownsCertificate,
	"peer-client-cert-file":       ownsCertificate,
	"peer-client-key-file":        ownsCertificate,
	"peer-crl-file":               ownsCertificate,
	"peer-auto-tls":               ownsCertificate,
	"self-signed-cert-validity":   ownsCertificate,
	"strict-reconfig-check":       ownsMembership,
	"max-learners":                ownsMembership,
	"experimental-max-learners":   ownsMembership,
	"force-new-cluster":           ownsMembership,
	"config-file":                 "with it etcd ignores every other flag",
	"proxy":                       endsProcess,
	"help":                        endsProcess,
	"h":                           endsProcess,
	"version":                     endsProcess,
}

// ownedPrefixes cover families of flags that differ between versions of etcd.
var ownedPrefixes = map[string]string{
	"listen-":            ownsIdentity,
	"discovery":          ownsIdentity,
	"proxy-":             endsProcess,
	"force-new-cluster-": ownsMembership,
}

// flagName returns the name of a flag of the form --name or --name=value.
func flagName(arg string) (string, bool) {
	match := argPattern.FindStringSubmatch(arg)
	if match == nil {
		return "", false
	}
	return match[1], true
}

func validateExtraArgs(args []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, arg := range args {
		at := path.Index(i)
		if len(arg) > maxArgLength {
			errs = append(errs, field.TooLong(at, "", maxArgLength))
			continue
		}
		name, ok := flagName(arg)
		if !ok || hasSpaceOrControl(arg) {
			errs = append(errs, invalid(at, arg, "must have the form --flag=value or --flag, without white space"))
			continue
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(at, "--"+name))
		}
		seen[name] = true
		if why := whyOwned(name); why != "" {
			errs = append(errs, forbidden(at, "--%s is not allowed: %s", name, why))
		}
	}
	return errs
}

// experimentalPrefix begins flags of etcd up to 3.6. Of each, 3.6 has one without the prefix or a feature gate, too.
const experimentalPrefix = "experimental-"

// validateExperimentalFlags rejects flags that the version does not know. etcd ends at an unknown flag, and a cluster of one
// member then has no way back: nothing shows that the new version has not touched the data.
func validateExperimentalFlags(spec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	v, ok := parseVersion(spec.Version)
	if !ok || spec.Etcd == nil || v.LessThan(semver.MustParse("3.7.0-0")) {
		return nil
	}
	var errs field.ErrorList
	for i, arg := range spec.Etcd.ExtraArgs {
		if name, ok := flagName(arg); ok && strings.HasPrefix(name, experimentalPrefix) && whyOwned(name) == "" {
			errs = append(errs, forbidden(path.Child("etcd", "extraArgs").Index(i),
				"--%s is unknown to etcd %s, which ends at such a flag; replace it by the one without this prefix or by --feature-gates while the members run 3.6", name, v))
		}
	}
	return errs
}

// envFlag returns the flag that etcd reads from an environment variable.
func envFlag(name string) (string, bool) {
	flag, found := strings.CutPrefix(name, "ETCD_")
	return strings.ToLower(strings.ReplaceAll(flag, "_", "-")), found
}

// whyFatal says why an environment variable is rejected that a manifest of the
// original etcd-operator could have. Others that stand for an owned flag are only
// warned about: the command line, which the controller writes, wins over them. These
// are not on it, or replace it, and would make each member a cluster of its own.
func whyFatal(name string) string {
	flag, found := envFlag(name)
	if !found {
		return ""
	}
	if flag == "config-file" || strings.HasPrefix(flag, "force-new-cluster") {
		return whyOwned(flag)
	}
	return ""
}

func whyOwned(name string) string {
	if typed, found := typedFlags[name]; found {
		return "set spec.etcd." + typed + " instead"
	}
	if why, found := ownedFlags[name]; found {
		return why
	}
	for prefix, why := range ownedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return why
		}
	}
	return ""
}
