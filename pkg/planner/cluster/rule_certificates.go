// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleCertificates waits while a certificate cannot be used: a member that is made
// now could not speak to the others, and to run without encryption would be worse
// than not to run. Members that run are left as they are. Going to sleep needs none.
func ruleCertificates(o *Observed) (Plan, bool) {
	c := o.unusable()
	if c == nil || o.size() == 0 {
		return Plan{}, false
	}
	if len(o.issue(Plan{})) > 0 {
		return Plan{RequeueAfter: recheckIssued}, true
	}
	reason, message, remediation := o.explain(c)
	after := recheckWaiting
	if o.CertManager != nil && o.CertManager.Served {
		after = recheckQuorum // nothing tells when it has issued them
	}
	return wait(after, reason, message, remediation), true
}
