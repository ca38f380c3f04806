// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// An image that a person has set by mistake is put back. A program that sets it again each time would make the
// controller restart members for ever. So images are put back in rounds, which the record counts: in one round
// the image of each pod is put back once, and the next round begins later each time. After patientRounds a
// member that serves the declared version keeps its image.
const (
	patientRounds = 2
	firstPause    = 10 * time.Second
	longestPause  = 30 * time.Minute
	// putBackMemory is after which time another image is a new mistake. It is longer than longestPause.
	putBackMemory = time.Hour
)

// putsBack is true for a pod whose image something else has set, and is put back now. A pod that is no
// member's yet has no m.
func putsBack(o *Observed, p *Pod, m *Member) bool {
	switch {
	case !hasUnrequestedImage(o.Now, p, m), keepsImage(o, p, m):
		return false
	case !cameBack(o.Record.PutBack, p):
		return true
	default:
		return !o.Now.Before(o.Record.PutBack.Since.Add(pauseAfter(o.Record.PutBack.Round)))
	}
}

// cameBack is true for a pod that was created with the requested image in this round, or whose image was put back
// in place. If something else has set its image since, that is not the first time.
func cameBack(r resources.PutBackRecord, p *Pod) bool { return r.Round > 0 && p.PutBack == r.String() }

// pauseAfter is how long after the beginning of a round the next one may begin. It doubles with each round.
func pauseAfter(round int) time.Duration {
	pause := firstPause
	for ; round > 1 && pause < longestPause; round-- {
		pause *= 2
	}
	return min(pause, longestPause)
}

// isForgotten is true when the record of the last round is dropped: another image is a new mistake then. Until then no
// pod may have had another image, nor restarted with one. The start of a container does not tell when its image was
// set, so one that ends by itself, with an image that came back, begins no new rounds.
func isForgotten(o *Observed) bool {
	r := o.Record.PutBack
	return r.Round > 0 && o.Now.Sub(r.Since) > putBackMemory && !slices.ContainsFunc(slices.Concat(o.Pods, o.Prepared), func(p Pod) bool {
		return isGone(&p) || !p.Running || hasUnrequestedImage(o.Now, &p, memberByName(o.Etcd.Members, p.Name)) ||
			o.Now.Sub(p.Made) <= putBackMemory || o.Now.Sub(p.Started) <= putBackMemory
	})
}

// keepsImage is true for a pod that keeps an image that something else has set: that came back, and etcd in the
// pod is what is declared. A prepared pod does not run etcd yet, so a member must run that image.
func keepsImage(o *Observed, p *Pod, m *Member) bool {
	r := o.Record.PutBack
	if r.Round < patientRounds || r.Round == patientRounds && !cameBack(r, p) || !p.Running {
		return false
	}
	if m == nil {
		return slices.ContainsFunc(o.Etcd.Members, func(other Member) bool {
			pod, target := podByName(o.Pods, other.Name), parse(p.Version)
			return !isGone(pod) && pod.ImageName == p.ImageName && other.Health == Healthy && isSameRelease(parse(other.Version), target)
		})
	}
	fails := m.Health != Healthy && notServedFor(o.Cluster.Status.Conditions, o.Now, m) >= settledAfter
	return !hasSettled(o.Now, p) || !fails && !runsOther(p, m)
}

// nextRound returns what the record must say before images are put back, or when that is long ago; false if this round
// goes on.
func nextRound(o *Observed) (resources.PutBackRecord, bool) {
	if isForgotten(o) {
		return resources.PutBackRecord{}, true
	}
	r, begins := o.Record.PutBack, false
	next := resources.PutBackRecord{Round: r.Round + 1, Since: o.Now.UTC().Truncate(time.Second)}
	for _, p := range slices.Concat(o.Pods, o.Prepared) {
		if isGone(&p) || r.Round > 0 && !cameBack(r, &p) || !putsBack(o, &p, memberByName(o.Etcd.Members, p.Name)) {
			continue
		}
		begins = true
	}
	return next, begins
}

// findRewritten returns a voter whose image something else sets each time, and that is not put back now; nil if
// there is none.
func findRewritten(o *Observed) *Member {
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if p := podByName(o.Pods, m.Name); !isGone(p) && hasUnrequestedImage(o.Now, p, m) && !putsBack(o, p, m) {
			return m
		}
	}
	return nil
}
