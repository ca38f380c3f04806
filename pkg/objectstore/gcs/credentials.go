// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	serviceAccount = "service_account"
	authorizedUser = "authorized_user"
	// universe is the only one in which the store is looked for.
	universe = "googleapis.com"
)

// credentialFields are the types of credentials that hold all that it takes, and the fields
// of each. Other types name files, programs or URLs, which the author of the Secret would
// have this program read, run or ask.
var credentialFields = map[string][]string{
	serviceAccount: {
		"type", "project_id", "private_key_id", "private_key", "client_email", "client_id", "auth_uri", "token_uri",
		"auth_provider_x509_cert_url", "client_x509_cert_url", "universe_domain", "quota_project_id",
	},
	authorizedUser: {
		"type", "client_id", "client_secret", "refresh_token", "account", "quota_project_id", "universe_domain",
	},
}

// externalTypes are other types of Google, which may be repeated to a reader.
var externalTypes = []string{"external_account", "external_account_authorized_user", "impersonated_service_account", "gdch_service_account"}

// readCredentials reads the secret's credentials.json. The error matches ErrCredentials and
// repeats no value of the file.
func readCredentials(ctx context.Context, raw []byte) (oauth2.TokenSource, error) {
	kind, err := checkCredentials(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: the entry %s of the Secret in gcs.gcpSecret %w", objectstore.ErrCredentials, credentialsFile, err)
	}
	parsed, err := google.CredentialsFromJSONWithType(ctx, raw, google.CredentialsType(kind), storage.DevstorageReadWriteScope)
	if err != nil {
		// The cause may quote the file.
		return nil, fmt.Errorf("%w: the entry %s of the Secret in gcs.gcpSecret holds no credentials of Google; store a key file of a service account there",
			objectstore.ErrCredentials, credentialsFile)
	}
	return parsed.TokenSource, nil
}

// checkCredentials returns the type of the credentials, or says what is wrong with the file, as the end of a sentence.
func checkCredentials(raw []byte) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", fmt.Errorf("is no JSON object; store a key file of a service account there")
	}
	kind := text(fields["type"])
	known, ok := credentialFields[kind]
	if !ok {
		named := "another type"
		if slices.Contains(externalTypes, kind) {
			named = "type " + kind
		}
		return "", fmt.Errorf("has %s in the field type, and only %s and %s are accepted. Store a key file of a service account there. "+
			"Or omit gcs.gcpSecret and set serviceAccountName to a service account that Google knows", named, serviceAccount, authorizedUser)
	}
	for name := range fields {
		if !slices.Contains(known, name) {
			return "", fmt.Errorf("has the field %s, which no file of type %s has; remove it", readable(name), kind)
		}
	}
	if domain := text(fields["universe_domain"]); domain != "" && domain != universe {
		return "", fmt.Errorf("has a universe_domain other than %s; only that is supported", universe)
	}
	if at := text(fields["token_uri"]); at != "" && !isGoogle(at) {
		return "", fmt.Errorf("has a token_uri that is not https:// at accounts.google.com or below googleapis.com; download the key file again")
	}
	return kind, nil
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// isGoogle is true for the addresses at which Google gives tokens.
func isGoogle(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Port() == "" &&
		(u.Host == "accounts.google.com" || strings.HasSuffix(u.Host, ".googleapis.com"))
}

var fieldPattern = regexp.MustCompile(`^[A-Za-z0-9_]{1,40}$`)

// readable repeats the name of a field only if it looks like one.
func readable(name string) string {
	if fieldPattern.MatchString(name) {
		return name
	}
	return "of an unreadable name"
}
