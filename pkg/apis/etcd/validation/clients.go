// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"slices"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxClients bounds the Secrets that the controller reads one by one for a cluster.
const maxClients = 32

// commonNamePattern has at most 64 characters, as X.509 and cert-manager have.
var commonNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,63}$`)

// memberCommonNames are the names in the certificates of members. A member takes a client that
// has the first of them for another member.
var memberCommonNames = []string{v1beta2.PeerCommonName, v1beta2.ServerCommonName}

// validateClients leaves the names of Secrets to validateClientSecrets, which knows the name
// of the cluster.
func validateClients(spec *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	if len(spec.Clients) == 0 {
		return nil
	}
	var errs field.ErrorList
	switch c := channelsOf(spec.TLS); {
	case c.client && c.source == "certManager":
		errs = append(errs, forbidden(path, "may not be set together with spec.TLS.certManager, because the controller cannot sign certificates then. "+
			"Remove the clients, and create a Certificate of cert-manager with spec.TLS.certManager.issuerRef for each application"))
	case c.client && c.source == "static":
		errs = append(errs, forbidden(path, "may not be set together with spec.TLS.static.operatorSecret, because the controller has no key of the CA. "+
			"Remove the clients, and issue a certificate from your CA for each application"))
	}
	if len(spec.Clients) > maxClients {
		return append(errs, field.TooMany(path, len(spec.Clients), maxClients))
	}
	names := map[string]bool{}
	for i := range spec.Clients {
		client, at := &spec.Clients[i], path.Index(i)
		errs = append(errs, validateClientName(client.Name, names, at.Child("name"))...)
		errs = append(errs, validateCommonName(client, at.Child("commonName"))...)
		errs = append(errs, validateObjectName(client.SecretName, at.Child("secretName"))...)
		names[client.Name] = true
	}
	return errs
}

func validateClientName(name string, names map[string]bool, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "name the application")}
	case names[name]:
		return field.ErrorList{field.Duplicate(path, echo(name))}
	default:
		return reasons(path, name, utilvalidation.IsDNS1123Label(name))
	}
}

func validateCommonName(client *v1beta2.ClusterClient, path *field.Path) field.ErrorList {
	name := client.CertificateName()
	switch {
	case slices.Contains(memberCommonNames, name):
		return field.ErrorList{invalid(path, name, "must not be %s, which is the common name of the members; choose the name of the application", name)}
	case client.CommonName == "" && name == v1beta2.OperatorCommonName:
		return field.ErrorList{field.Required(path, "etcd's user root may do everything; to issue a certificate of root, set commonName to root, otherwise choose another name")}
	case client.CommonName != "" && !commonNamePattern.MatchString(client.CommonName):
		return field.ErrorList{invalid(path, client.CommonName,
			`must have 1 to 64 letters, digits and characters ". _ : @ / -", with a letter or a digit first, such as my-app`)}
	}
	return nil
}

// validateClientSecrets rejects a Secret that has two uses.
func validateClientSecrets(cluster *v1beta2.EtcdCluster, path *field.Path) field.ErrorList {
	if len(cluster.Spec.Clients) > maxClients {
		return nil // reported by validateClients
	}
	var errs field.ErrorList
	used := map[string]string{}
	for _, name := range certificateSecrets(cluster) {
		used[name] = "which the cluster needs for its own certificates"
	}
	for i := range cluster.Spec.Clients {
		name := cluster.Spec.Clients[i].SecretOf(cluster.Name)
		if use := used[name]; use != "" {
			errs = append(errs, invalid(path.Index(i).Child("secretName"), name, "must not be the Secret %s, %s; choose another name", echo(name), use))
		}
		used[name] = "which another client of the cluster has"
	}
	return errs
}

// certificateSecrets lists the Secrets of the cluster itself, whatever spec.TLS is.
func certificateSecrets(cluster *v1beta2.EtcdCluster) []string {
	var names []string
	for _, suffix := range []string{
		v1beta2.CASecretSuffix, v1beta2.PeerSecretSuffix, v1beta2.ServerSecretSuffix, v1beta2.OperatorSecretSuffix, v1beta2.ClientSecretSuffix,
	} {
		names = append(names, cluster.Name+suffix)
	}
	if tls := cluster.Spec.TLS; tls != nil && tls.Static != nil && tls.Static.Member != nil {
		names = append(names, tls.Static.Member.PeerSecret) // clients need none of the others
	}
	return names
}

// clientWarnings names the clients that may do everything.
func clientWarnings(spec *v1beta2.ClusterSpec, path *field.Path) []string {
	var warnings []string
	for i := range spec.Clients {
		if i < maxClients && spec.Clients[i].CommonName == v1beta2.OperatorCommonName {
			warnings = append(warnings, fmt.Sprintf("%s: root may do everything in a cluster with etcd's own authorization; only programs that administer users and roles need it",
				path.Index(i).Child("commonName")))
		}
	}
	return warnings
}
