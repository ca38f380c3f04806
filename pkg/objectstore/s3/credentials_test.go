// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

const canary = "canary-5d1c"

const keysOf = "aws_access_key_id = ID\naws_secret_access_key = SECRET\n"

// TestIdentities: what users of the AWS tools have in their files is understood.
func TestIdentities(t *testing.T) {
	for name, test := range map[string]struct {
		credentials, config string
		want                identity
		role                role
	}{
		"keys":            {"[default]\n" + keysOf, "", identity{id: "ID", secret: "SECRET"}, role{}},
		"session, region": {"[default]\n" + keysOf + "aws_session_token=T==\n", "[default]\nregion=eu-1 # here\noutput = json\n", identity{id: "ID", secret: "SECRET", session: "T==", region: "eu-1"}, role{}},
		"all in one":      {"# keys\n\n [ default ] \n  AWS_Access_Key_ID=ID\n  aws_secret_access_key = SECRET\n  region = r\n", "", identity{id: "ID", secret: "SECRET", region: "r"}, role{}},
		"other profiles":  {"[work]\ncredential_process = /bin/sh\n[default]\n" + keysOf, "[profile sso]\nsso_start_url = x\n[sso-session s]\nsso_region = x\n", identity{id: "ID", secret: "SECRET"}, role{}},
		"nested settings": {"[default]\n" + keysOf, "[default]\ns3 =\n  signature_version = s3v4\n  endpoint_url = http://x\nregion = r\n", identity{id: "ID", secret: "SECRET", region: "r"}, role{}},
		"a role": {
			"[base]\n" + keysOf, "[default]\nrole_arn = R\nsource_profile = base\nexternal_id = E\nrole_session_name = N\nduration_seconds = 900\n",
			identity{id: "ID", secret: "SECRET"}, role{"R", "E", "N", 15 * time.Minute},
		},
		"a role of its own": {"[default]\n" + keysOf, "[default]\nrole_arn = R\nsource_profile = default\n", identity{id: "ID", secret: "SECRET"}, role{arn: "R"}},
	} {
		entries := map[string]string{credentialsFile: test.credentials}
		if test.config != "" {
			entries[configFile] = test.config
		}
		got, err := readIdentity(storetest.Secret(t, entries))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if test.role != (role{}) && (got.role == nil || *got.role != test.role) {
			t.Errorf("%s: role %+v, want %+v", name, got.role, test.role)
		}
		if (got.role != nil) != (test.role != role{}) {
			t.Errorf("%s: role %+v", name, got.role)
		}
		if got.role = nil; *got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, *got, test.want)
		}
	}
}

// TestProfilesThatReachElsewhere: a profile that names a program, a file or an address is
// rejected before anything is done, and the message names the entry and the setting.
func TestProfilesThatReachElsewhere(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	ran := filepath.Join(t.TempDir(), "ran")
	for setting, value := range map[string]string{
		"credential_process":      "/usr/bin/touch " + ran,
		"web_identity_token_file": "/var/run/secrets/" + canary,
		"credential_source":       "Ec2InstanceMetadata",
		"sso_start_url":           elsewhere.URL,
		"endpoint_url":            elsewhere.URL,
		"services":                canary,
		"ca_bundle":               "/etc/" + canary,
		"anything_new":            canary,
	} {
		for where, entries := range map[string]map[string]string{
			"config":              {credentialsFile: "[default]\n" + keysOf, configFile: "[default]\n" + setting + " = " + value + "\n"},
			"credentials":         {credentialsFile: "[default]\n" + keysOf + setting + " = " + value + "\n"},
			"source of a role":    {credentialsFile: "[base]\n" + keysOf + setting + " = " + value + "\n", configFile: "[default]\nrole_arn = R\nsource_profile = base\n"},
			"only that, no keys":  {credentialsFile: "[default]\n" + setting + " = " + value + "\n"},
			"beside another name": {credentialsFile: "[default]\n" + keysOf, configFile: "[default]\n" + strings.ToUpper(setting) + "=" + value + "\n"},
		} {
			_, err := New(t.Context(), Config{Bucket: "b", CredentialsDir: storetest.Secret(t, entries), Transport: storetest.Transport(t, nil)})
			if !errors.Is(err, objectstore.ErrCredentials) || !strings.Contains(fmt.Sprint(err), setting) || !strings.Contains(fmt.Sprint(err), "s3.awsSecret") {
				t.Errorf("%s in %s: %v", setting, where, err)
			}
			if strings.Contains(fmt.Sprint(err), value) || strings.Contains(fmt.Sprint(err), canary) {
				t.Errorf("%s in %s: a value is in %v", setting, where, err)
			}
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) || asked > 0 {
		t.Errorf("a program ran (%v), a server got %d requests", err, asked)
	}
	for name, config := range map[string]string{
		"a chain":          "[default]\nrole_arn = R\nsource_profile = base\n[profile base]\nrole_arn = S\nsource_profile = default\n",
		"no such profile":  "[default]\nrole_arn = R\nsource_profile = none\n",
		"no such duration": "[default]\nrole_arn = R\nduration_seconds = " + canary + "\n",
	} {
		_, err := readIdentity(storetest.Secret(t, map[string]string{credentialsFile: "[base]\n" + keysOf, configFile: config}))
		if !errors.Is(err, objectstore.ErrCredentials) || strings.Contains(fmt.Sprint(err), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRole: a role is assumed with the keys of the Secret, and its own keys are used.
func TestRole(t *testing.T) {
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRole" || r.Form.Get("RoleArn") != "R" || r.Form.Get("ExternalId") != "E" ||
			!strings.Contains(r.Header.Get("Authorization"), "Credential=ID/") {
			http.Error(w, "unexpected", http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`, storetest.AccessKey, storetest.SecretKey, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(sts.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	var authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		w.Header().Set("Content-Length", "7")
	}))
	t.Cleanup(server.Close)
	secret := storetest.Secret(t, map[string]string{
		credentialsFile: "[base]\n" + keysOf, configFile: "[default]\nrole_arn = R\nsource_profile = base\nexternal_id = E\n",
	})
	store := open(t, func(c *Config) { c.Endpoint, c.CredentialsDir = server.URL, secret }, nil)
	if object, err := store.Stat(t.Context(), "k"); err != nil || object.Size != 7 || !strings.Contains(authorization, "Credential="+storetest.AccessKey+"/") {
		t.Errorf("%+v, %v; asked with %q", object, err, authorization)
	}
}
