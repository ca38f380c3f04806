// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// rules are what the docs promise of retention, judged by what is true and not by what a clock has shown. Where clocks
// were wrong, two backups may count in either order: then nothing is demanded of either.
type rules struct {
	known    map[string]*madeBackup // by the key of the manifest
	notOwned map[string]bool        // keys of what others have stored
	running  *run                   // the agent that runs
	zombie   bool                   // on a lost node, with a request from before
	mustKeep map[string]string      // why a backup is kept, by the key of its manifest; nil before the backup of the run is complete
	broken   string

	made, pruned, prunedEarlier, restored, failed, expired int
}

// madeBackup is a backup that has, or had, a manifest.
type madeBackup struct {
	key, uid, id string
	uri          string
	at           time.Time
	ahead        clocks // of what is recorded, beyond what is true
	revision     int64
	unconfirmed  bool
	lineage      string
	rotten       bool
}

// add adds what another life has counted.
func (r *rules) add(s *rules) {
	r.made, r.pruned, r.prunedEarlier = r.made+s.made, r.pruned+s.pruned, r.prunedEarlier+s.prunedEarlier
	r.restored, r.failed, r.expired = r.restored+s.restored, r.failed+s.failed, r.expired+s.expired
}

// doubt is by how much what is recorded may be wrong for the order of backups.
func (w *retentionWalk) doubt(b *madeBackup) time.Duration {
	if w.volume { // its node has dated the objects, too
		return max(b.ahead.kubernetes.Abs(), b.ahead.node.Abs())
	}
	return b.ahead.kubernetes.Abs()
}

// mayBeNewer is true if a may count as newer than b, and isNewer if it must.
func (w *retentionWalk) mayBeNewer(a, b *madeBackup) bool {
	return a != b && !a.at.Add(w.doubt(a)).Before(b.at.Add(-w.doubt(b)))
}

func isNewer(a, b *madeBackup) bool {
	sum := max(a.ahead.kubernetes.Abs(), a.ahead.node.Abs()) + max(b.ahead.kubernetes.Abs(), b.ahead.node.Abs())
	return a != b && a.at.Sub(b.at) > sum
}

// stored are the backups that are there. Callers hold no lock of the shelf, and no request runs.
func (w *retentionWalk) stored() []*madeBackup {
	var there []*madeBackup
	for _, key := range w.shelf.keys() {
		if b := w.known[key]; b != nil && w.shelf.objects[path.Join(path.Dir(key), "snapshot.db")] != nil {
			there = append(there, b)
		}
	}
	return there
}

// concluding notes what has to stay, before the agent prunes.
func (w *retentionWalk) concluding(done *manifest.Stored) {
	w.mustKeep = map[string]string{}
	there, prune := w.stored(), w.running.request.Prune
	for _, b := range there {
		if why := w.whyKept(b, there, done, prune); why != "" {
			w.mustKeep[b.key] = why
		}
	}
}

func (w *retentionWalk) whyKept(b *madeBackup, there []*madeBackup, done *manifest.Stored, prune *agent.Prune) string {
	newer, ofItsCluster, ofOthers, current := 0, 0, 0, w.running.request.Save.Owner.UID
	for _, a := range there {
		if !w.mayBeNewer(a, b) {
			continue
		}
		newer++
		switch {
		case a.rotten: // what cannot be read is no last copy
		case a.uid == b.uid:
			ofItsCluster++
		case a.uid != current:
			ofOthers++
		}
	}
	switch {
	case done.Manifest.Unconfirmed:
		return "no quorum confirmed the newest backup"
	case prune == nil:
		return "nothing is pruned"
	case b.key == done.Key || newer == 0:
		return "it is the newest one"
	case w.isHeld(b.uri):
		return "it is held"
	case w.isNeeded(b.uri):
		return "a restore reads it"
	case w.mayBeOlderThan(b, w.known[done.Key], time.Duration(prune.MaxAgeSeconds)*time.Second):
		return ""
	case prune.Count == 0 || newer < int(prune.Count):
		return fmt.Sprintf("only %d of %d are newer, and it is of %s", newer, prune.Count, b.at.Format(time.DateTime))
	case b.uid != current && !b.rotten && ofItsCluster == 0 && ofOthers == 0:
		return "it is the last one of the earlier cluster"
	}
	return ""
}

// mayBeOlderThan is true if a backup may count as older than the limit. One clock that is wrong makes none old.
func (w *retentionWalk) mayBeOlderThan(b, made *madeBackup, limit time.Duration) bool {
	ahead := min(made.at.Add(made.ahead.kubernetes).Sub(w.now), w.ahead.node) // that of Kubernetes has dated what was made
	if !w.volume {
		ahead = min(ahead, made.at.Sub(w.now))
	}
	behind := max(0, min(-b.ahead.kubernetes, -b.ahead.node))
	return limit > 0 && w.now.Add(max(ahead, 0)).Sub(b.at.Add(-behind)) > limit
}

// deleting is called for each deletion.
func (w *retentionWalk) deleting(key string) {
	manifestKey := manifest.LayoutDirectory.ManifestKey(key)
	b := w.known[manifestKey]
	switch why := w.mustKeep[manifestKey]; {
	case w.broken != "":
	case w.notOwned[key]:
		w.broken = key + " is deleted, which another program has stored"
	case w.running == nil:
		w.broken = key + " is deleted by nothing"
	case b == nil: // what an attempt left that did not end
	case w.mustKeep == nil && b.id != w.running.request.ID:
		w.broken = key + " is deleted before a newer backup is complete"
	case why != "":
		w.broken = fmt.Sprintf("%s is deleted although %s", key, why)
	case w.mustKeep != nil && key == manifestKey:
		w.pruned++
		if b.uid != w.running.request.Save.Owner.UID {
			w.prunedEarlier++
		}
	}
}

// checkDeleted runs after more than a year in which nothing was wrong and nothing was held.
func (w *retentionWalk) checkDeleted() {
	prune, there := w.backup.Spec.BackupPolicy, w.stored()
	for _, b := range there {
		newer, newerOfOthers := 0, 0
		for _, a := range there {
			if isNewer(a, b) {
				newer++
				if a.uid != string(w.cluster.UID) && !a.rotten {
					newerOfOthers++
				}
			}
		}
		tooMany := prune.MaxBackups > 0 && newer >= int(prune.MaxBackups)
		age := w.now.Sub(b.at) - max(b.ahead.kubernetes.Abs(), b.ahead.node.Abs())
		tooOld := prune.MaxAge != nil && newer > 0 && age > prune.MaxAge.Duration+w.every
		if tooMany && !tooOld && b.uid != string(w.cluster.UID) && newerOfOthers == 0 {
			continue // it is the last one of the earlier cluster
		}
		if !b.rotten && (tooMany || tooOld) {
			for _, a := range there {
				w.note("stored: %s, rotten %t, %+v", a.key, a.rotten, a.ahead)
			}
			w.fail("%s of %s stays, with %d newer ones, count %d, age %v", b.key, b.at.Format(time.DateTime), newer, prune.MaxBackups, prune.MaxAge)
		}
	}
	for key := range w.notOwned {
		if w.shelf.objects[key] == nil {
			w.fail("%s of another program does not exist any more", key)
		}
	}
	of := "etcd/nightly/v1/ns/c-" + string(w.cluster.UID) + "/"
	for _, key := range w.shelf.keys() {
		young := w.now.Sub(w.shelf.objects[key].Modified) < 2*day
		if strings.HasPrefix(key, of) && !w.notOwned[key] && w.known[manifest.LayoutDirectory.ManifestKey(key)] == nil && !young {
			w.fail("%s stays, which an attempt has left", key)
		}
	}
}
