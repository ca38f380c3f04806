// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const certManagerGroup = "cert-manager.io"

func validateTLS(tls *v1beta2.TLSPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const one = "may not be set together with %s: certificates come from one place; remove one of the two"
	if tls.Auto != nil && tls.Static != nil {
		errs = append(errs, forbidden(path.Child("auto"), one, "static"))
	}
	if tls.CertManager != nil && tls.Static != nil {
		errs = append(errs, forbidden(path.Child("certManager"), one, "static"))
	}
	if tls.CertManager != nil && tls.Auto != nil {
		errs = append(errs, forbidden(path.Child("certManager"), one, "auto"))
	}
	if tls.Static != nil {
		errs = append(errs, validateStaticTLS(tls.Static, path.Child("static"))...)
	}
	if tls.CertManager != nil {
		errs = append(errs, validateIssuer(&tls.CertManager.IssuerRef, path.Child("certManager", "issuerRef"))...)
	}
	return errs
}

func validateStaticTLS(static *v1beta2.StaticTLS, path *field.Path) field.ErrorList {
	// The original etcd-operator crashed on an operatorSecret without member.
	member := v1beta2.MemberSecret{}
	if static.Member != nil {
		member = *static.Member
	}
	memberPath := path.Child("member")
	errs := validateObjectName(static.OperatorSecret, path.Child("operatorSecret"))
	errs = append(errs, validateObjectName(member.PeerSecret, memberPath.Child("peerSecret"))...)
	errs = append(errs, validateObjectName(member.ServerSecret, memberPath.Child("serverSecret"))...)
	if static.OperatorSecret != "" && member.ServerSecret == "" {
		errs = append(errs, field.Required(memberPath.Child("serverSecret"), "must be set together with operatorSecret, because members without it speak plain HTTP"))
	}
	if static.OperatorSecret == "" && member.ServerSecret != "" {
		errs = append(errs, field.Required(path.Child("operatorSecret"), "must be set together with member.serverSecret, because the controller could not talk to the members without it"))
	}
	return errs
}

func validateIssuer(ref *v1beta2.IssuerReference, path *field.Path) field.ErrorList {
	errs := requireObjectName(ref.Name, path.Child("name"), "name the issuer")
	if ref.Group != "" {
		errs = append(errs, reasons(path.Child("group"), ref.Group, utilvalidation.IsDNS1123Subdomain(ref.Group))...)
	}
	if ref.Group == "" || ref.Group == certManagerGroup {
		return append(errs, validateEnum(ref.Kind, path.Child("kind"), "Issuer", "ClusterIssuer")...)
	}
	if hasSpaceOrControl(ref.Kind) {
		errs = append(errs, invalid(path.Child("kind"), ref.Kind, "must be the kind of an issuer"))
	}
	return errs
}
