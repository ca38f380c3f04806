// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleCertificates waits while a certificate cannot be used that pods mount, or that the
// controller shows to members. A member that is made now could not speak to the others, and to
// run without encryption would be worse than not to run. Members that run are left as they are.
// A certificate of clients keeps nothing from being repaired. Going to sleep needs none.
func ruleCertificates(o *Observed) (Plan, bool) {
	facts := certificateInput(o)
	c := facts.FirstBlocking()
	if c == nil || facts.Hibernated {
		return Plan{}, false
	}
	if facts.IsIssuing() {
		return Plan{RequeueAfter: recheckUnannounced}, true
	}
	reason, message, remediation := facts.Explain(c)
	after := recheckWaiting
	if o.CertManager != nil && o.CertManager.Served {
		after = recheckQuorum // nothing tells when it has issued them
	}
	return wait(after, Reason(reason), message, remediation), true
}
