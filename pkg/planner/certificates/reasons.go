// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

// Reasons of the condition CertificatesValid. The first group also blocks: see rule
// certificates.
const (
	// ReasonCANotTrusted: certificates were replaced before every member trusted the CA that signed them. No member that serves is restarted or replaced. Ends when the old ones are back.
	ReasonCANotTrusted = "CANotTrusted"
	// ReasonCertManagerMissing: cert-manager is to issue certificates and is not installed. Ends when it is.
	ReasonCertManagerMissing = "CertManagerMissing"
	// ReasonCertificateExpired: a certificate, or a CA that verifies it, is no longer valid. Ends with a new one.
	ReasonCertificateExpired = "CertificateExpired"
	// ReasonCertificateNotYetValid: a certificate becomes valid later. Ends at that time.
	ReasonCertificateNotYetValid = "CertificateNotYetValid"
	// ReasonCertificateUnusable: a Secret holds something that is no usable certificate. Ends when the Secret is corrected.
	ReasonCertificateUnusable = "CertificateUnusable"
	// ReasonNameConflict: an object of a name that this cluster needs exists and is not owned by it. Ends when that object is deleted.
	ReasonNameConflict = "NameConflict"
	// ReasonPeerCertificateLost: the Secrets of the CA and of the peers were lost together, and members without PVCs cannot restart together to trust others. Ends when the Secret of the peers is restored.
	ReasonPeerCertificateLost = "PeerCertificateLost"
	// ReasonSecretIncomplete: a Secret lacks an entry. Ends when the Secret has it.
	ReasonSecretIncomplete = "SecretIncomplete"
	// ReasonSecretMissing: a Secret does not exist. Ends when it does.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretUnreadable: a Secret could not be read. Ends when it can.
	ReasonSecretUnreadable = "SecretUnreadable"
	// ReasonTrustPending: the CA was lost with its key, or an older one was put back, and a member does not trust the present one yet. Ends when the last such member has restarted.
	ReasonTrustPending = "TrustPending"

	// ReasonAllUsable: every certificate can be used. The good state.
	ReasonAllUsable = "AllUsable"
	// ReasonCAPutBack: another program has put an older CA back after each of the last rotations. Ends when it no longer does, and another rotation is requested.
	ReasonCAPutBack = "CAPutBack"
	// ReasonExpiresSoon: a certificate, or a CA that verifies it, should have been renewed. Ends with a new one.
	ReasonExpiresSoon = "ExpiresSoon"
	// ReasonIssuing: the controller issues a certificate. Ends within seconds.
	ReasonIssuing = "Issuing"
	// ReasonRestartPending: a member must restart to trust the present CAs. Ends with that restart.
	ReasonRestartPending = "RestartPending"
)
