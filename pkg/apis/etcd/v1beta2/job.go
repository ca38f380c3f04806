// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// OnlySecretUse returns the fields that decide where the content of a Secret that the pod mounts may go. With env a user
// sets proxies. A webhook may add containers and mounts as labels and annotations say.
func (j *JobPolicy) OnlySecretUse() JobPolicy {
	if j == nil {
		return JobPolicy{}
	}
	return JobPolicy{Labels: j.Labels, Annotations: j.Annotations, Env: j.Env}
}

// SetSecretUse replaces the fields that OnlySecretUse returns by those of from, which may be nil.
func (j *JobPolicy) SetSecretUse(from *JobPolicy) {
	use := from.DeepCopy().OnlySecretUse()
	j.Labels, j.Annotations, j.Env = use.Labels, use.Annotations, use.Env
}
