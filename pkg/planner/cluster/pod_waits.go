// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "strings"

// podWait says what a reason of Kubernetes means for which a pod does not run.
type podWait struct {
	reason Reason
	// fact follows the name of the pod or member; %s is what Kubernetes says after its reason.
	fact string
	// remedy is what lets the pod run; %s is the beginning of a command that patches the cluster. An
	// empty remedy is that of the reason's row in Waits.
	remedy string
}

var (
	notPulled = podWait{
		ReasonImageNotPulled, "image %s cannot be pulled",
		"If the image does not exist, set spec.version or spec.repository: %s '{\"spec\":{\"version\":\"X.Y.Z\"}}'. " +
			"If its registry wants credentials, name their Secret in spec.pod.imagePullSecrets. " +
			"If an admission policy has to change images, such as to those of a mirror, correct the policy, or name the mirror in spec.repository.",
	}
	notCreated = podWait{ReasonContainerNotCreated, "Kubernetes cannot create a container: %s", ""}
)

// podWaits are the reasons of Kubernetes. Those with which a pod ends as a whole, such as Evicted, and
// those of a pod that Kubernetes rejects, such as a quota, are ReasonPodFailed and ReasonPodRejected.
// A volume that cannot be mounted (FailedMount) shows in events only: the row of the wait names them.
var podWaits = map[string]podWait{
	"ErrImagePull":               notPulled,
	"ImagePullBackOff":           notPulled,
	"ErrImageNeverPull":          notPulled,
	"RegistryUnavailable":        notPulled,
	"InvalidImageName":           notPulled,
	"ImageInspectError":          notPulled,
	"CreateContainerConfigError": notCreated,
	"CreateContainerError":       notCreated,
	"RunContainerError":          notCreated,
	"CrashLoopBackOff":           {ReasonContainerCrashes, "its container ends again and again (CrashLoopBackOff)", ""},
	"Unschedulable":              {ReasonPodUnschedulable, "no node takes the pod: %s", ""},
	"SchedulerError":             {ReasonPodUnschedulable, "no node takes the pod: %s", ""},
}

// IsImageWait is true for a reason of Kubernetes for which an image is missing.
func IsImageWait(reason string) bool { return podWaits[reason].reason == ReasonImageNotPulled }

// fill puts a value into one of the texts above.
func fill(text, value string) string { return strings.Replace(text, "%s", value, 1) }
