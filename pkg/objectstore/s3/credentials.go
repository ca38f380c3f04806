// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// The files of the secret, in the form of the AWS tools.
	credentialsFile = "credentials"
	configFile      = "config"
	defaultProfile  = "default"

	keyID, keySecret, keySession = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
	keyRegion                    = "region"
	keyRole, keySource           = "role_arn", "source_profile"
	keyExternalID, keyRoleName   = "external_id", "role_session_name"
	keyDuration                  = "duration_seconds"
)

// knownSettings are the settings of a profile that are used, and those that change nothing
// here. Any other one is rejected: a profile can name programs to run, files to read and
// addresses to ask, which the author of the Secret would have this program do.
var knownSettings = []string{
	keyID, keySecret, keySession, keyRegion, keyRole, keySource, keyExternalID, keyRoleName, keyDuration,
	"aws_account_id", "cli_auto_prompt", "cli_pager", "defaults_mode", "max_attempts", "output", "retry_mode", "s3",
}

// instead says what to do without settings that others use.
var instead = map[string]string{
	"ca_bundle":                    "name the Secret with the CA in s3.caSecret",
	"endpoint_url":                 "set s3.endpoint",
	"services":                     "set s3.endpoint",
	"s3_use_path_style":            "set s3.forcePathStyle",
	"credential_process":           useKeys,
	"credential_source":            useKeys,
	"web_identity_token_file":      useKeys,
	"sso_session":                  useKeys,
	"sso_start_url":                useKeys,
	"sso_account_id":               useKeys,
	"sso_role_name":                useKeys,
	"sso_region":                   useKeys,
	"login_session":                useKeys,
	"mfa_serial":                   useKeys,
	"use_fips_endpoint":            "set s3.endpoint",
	"use_dualstack_endpoint":       "set s3.endpoint",
	"s3_use_arn_region":            "remove it",
	"sigv4a_signing_region_set":    "remove it",
	"request_checksum_calculation": "remove it",
	"response_checksum_validation": "remove it",
}

const useKeys = "put aws_access_key_id and aws_secret_access_key there, or leave s3.awsSecret out and name a service account that AWS knows in serviceAccountName"

// identity is the identity of the client in a Secret.
type identity struct {
	id, secret, session, region string
	// role is assumed with the keys; nil if the keys are used themselves.
	role *role
}

// role is a role of AWS.
type role struct {
	arn, externalID, session string
	duration                 time.Duration
}

// profiles are the settings of each profile.
type profiles map[string]map[string]setting

// setting is a value and the entry of the Secret that it stands in.
type setting struct{ value, entry string }

// readIdentity reads the secret in dir. The error matches ErrCredentials and repeats no value.
func readIdentity(dir string) (*identity, error) {
	entries, err := objectstore.ReadSecret(dir, []string{credentialsFile}, configFile)
	if err != nil {
		return nil, fmt.Errorf("%w (the Secret in s3.awsSecret)", err)
	}
	all := profiles{}
	for _, entry := range []string{configFile, credentialsFile} { // the later one counts
		if !all.read(entry, entries[entry]) {
			return nil, unusable(entry, "has not the form of the AWS tools: [default], then name = value; write it again")
		}
	}
	chosen, found := all[defaultProfile]
	if !found {
		return nil, unusable(credentialsFile, "has no profile "+defaultProfile+"; add it")
	}
	if err := checkSettings(defaultProfile, chosen); err != nil {
		return nil, err
	}
	source := &identity{region: chosen[keyRegion].value}
	keys, name := chosen, defaultProfile
	if arn := chosen[keyRole]; arn.value != "" {
		if source.role, err = readRole(chosen); err != nil {
			return nil, err
		}
		if keys, name, err = all.source(chosen); err != nil {
			return nil, err
		}
	}
	source.id, source.secret, source.session = keys[keyID].value, keys[keySecret].value, keys[keySession].value
	if source.id == "" || source.secret == "" {
		return nil, unusable(credentialsFile, "has not both %s and %s in profile %s; add them", keyID, keySecret, readable(name))
	}
	return source, nil
}

// source returns the profile with the keys that a role is assumed with.
func (p profiles) source(of map[string]setting) (map[string]setting, string, error) {
	from := of[keySource]
	if from.value == "" || from.value == defaultProfile {
		return of, defaultProfile, nil
	}
	keys, found := p[from.value]
	if !found {
		return nil, "", unusable(from.entry, "has a %s in profile %s that names no profile; add that profile, with keys", keySource, defaultProfile)
	}
	if err := checkSettings(from.value, keys); err != nil {
		return nil, "", err
	}
	if other := keys[keyRole]; other.value != "" {
		return nil, "", unusable(other.entry, "has %s in profile %s, which %s names; only keys are read there", keyRole, readable(from.value), keySource)
	}
	return keys, from.value, nil
}

func readRole(chosen map[string]setting) (*role, error) {
	r := &role{arn: chosen[keyRole].value, externalID: chosen[keyExternalID].value, session: chosen[keyRoleName].value}
	if seconds := chosen[keyDuration]; seconds.value != "" {
		n, err := strconv.ParseInt(seconds.value, 10, 32)
		if err != nil || n <= 0 {
			return nil, unusable(seconds.entry, "has a %s that is no number of seconds", keyDuration)
		}
		r.duration = time.Duration(n) * time.Second
	}
	return r, nil
}

// checkSettings rejects what is not known of a profile that is used.
func checkSettings(profile string, settings map[string]setting) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if slices.Contains(knownSettings, name) {
			continue
		}
		remedy := instead[name]
		if remedy == "" {
			remedy = "remove it"
		}
		return unusable(settings[name].entry, "has %s in profile %s, which is not supported; %s", readable(name), readable(profile), remedy)
	}
	return nil
}

func unusable(entry, format string, args ...any) error {
	return fmt.Errorf("%w: the entry %s of the Secret in s3.awsSecret %s", objectstore.ErrCredentials, entry, fmt.Sprintf(format, args...))
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// readable repeats a name only if it looks like one.
func readable(name string) string {
	if namePattern.MatchString(name) {
		return name
	}
	return "(an unreadable name)"
}
