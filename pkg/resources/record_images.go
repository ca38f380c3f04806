// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationPutBack on a pod names the round in which the controller has created the pod, or put its image back in
// place. If something else has set the image since, that is not the first time. See PutBackRecord.
const AnnotationPutBack = "etcd.database.coreos.com/images-put-back"

// PutBackRecord says how often the controller has put back images that something else has set on pods. The
// pods cannot say it: most of them are created again for that.
type PutBackRecord struct {
	// Round counts how often in a row the controller has begun to. In one round each pod is put back once.
	Round int
	// Since is when the last round began.
	Since time.Time
}

// Mark notes on a pod that its image is requested in this round.
func (r PutBackRecord) Mark(pod *corev1.Pod) {
	if r.Round > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationPutBack, r.String())
	}
}

// parsePutBack reads what String has written. What cannot be read counts as none: images are then put back
// a few times more.
func parsePutBack(text string) PutBackRecord {
	r, since := PutBackRecord{}, ""
	if _, err := fmt.Sscanf(text, "%d %s", &r.Round, &since); err != nil || r.Round < 1 {
		return PutBackRecord{}
	}
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return PutBackRecord{}
	}
	r.Since = at
	return r
}

// String writes the record, and names its round; it is empty for none.
func (r PutBackRecord) String() string {
	if r.Round == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", r.Round, r.Since.UTC().Format(time.RFC3339))
}
