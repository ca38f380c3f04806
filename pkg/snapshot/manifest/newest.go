// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "time"

// Candidate is a backup as far as a choice between several backups looks at it.
type Candidate struct {
	// At is when it was made; zero if no clock says that.
	At       time.Time
	Revision int64
	// Doubtful is true if no quorum confirmed it, or nothing verified it.
	Doubtful bool
	// Unconfirmed is true if no quorum confirmed it. Its time then says nothing of how new its data is.
	Unconfirmed bool
	// DataDiffers is true if etcd reported that the data of its members differed. It then counts only if nothing else does.
	DataDiffers bool
	// Lineage tells apart data whose revisions cannot be compared: a restore may set the revision back.
	Lineage string
	// Ordered is true if a higher revision of the lineage is newer data for certain, because each restore begins another
	// lineage. Clocks then do not matter.
	Ordered bool
}

// Newest returns the index of the backup that a restore takes of several; -1 if there is none. It is the newest one. A
// newest one that is doubtful comes after the newest sure one that has at least as many writes: a member that is cut off
// stores a late backup of old data. Without such a sure one,
// an unconfirmed one comes after the doubtful one of its lineage with most writes. The order of the backups does not matter, except that of two of one time the first
// counts as newer.
//
// One whose data differs may have the wrong data, whatever its time and its writes say. So it comes after each one whose
// data does not differ, also one of another lineage. It is restored if a user names it, or a place that has no other.
func Newest(backups []Candidate) int {
	var agreed []Candidate
	var places []int
	for i, c := range backups {
		if !c.DataDiffers {
			agreed, places = append(agreed, c), append(places, i)
		}
	}
	if len(agreed) == 0 {
		return newestByWrites(backups)
	}
	return places[newestByWrites(agreed)]
}

// newestByWrites is Newest of backups whose data differs, or of others, and not of both.
func newestByWrites(backups []Candidate) int {
	newest := newestWhere(backups, func(Candidate) bool { return true })
	if newest < 0 {
		return newest
	}
	if !backups[newest].Doubtful {
		return mostWrites(backups, newest)
	}
	late := backups[newest]
	if sure := newestWhere(backups, func(c Candidate) bool {
		return !c.Doubtful && c.Lineage == late.Lineage && c.Revision >= late.Revision
	}); sure >= 0 {
		return sure
	}
	for i, c := range backups {
		if !late.Unconfirmed {
			break
		}
		most := backups[newest]
		if c.Doubtful && c.Lineage == late.Lineage && (c.Revision > most.Revision || c.Revision == most.Revision && c.At.After(most.At)) {
			newest = i
		}
	}
	return newest
}

// mostWrites returns the sure backup with most writes of the lineage of the newest, whose clock may have been ahead.
func mostWrites(backups []Candidate, newest int) int {
	most := newest
	for i, c := range backups {
		if c.Ordered && !c.Doubtful && c.Lineage == backups[newest].Lineage && backups[newest].Ordered && c.Revision > backups[most].Revision {
			most = i
		}
	}
	return most
}

func newestWhere(backups []Candidate, counts func(Candidate) bool) int {
	newest := -1
	for i, c := range backups {
		if counts(c) && (newest < 0 || c.At.After(backups[newest].At)) {
			newest = i
		}
	}
	return newest
}

// AsCandidate returns what a stored backup says of itself. Its node dates it. A clock of a node that is behind does not
// make it older than the store and Kubernetes say: they date the object and the attempt that made it.
func (s Stored) AsCandidate() Candidate {
	at := s.MadeAt()
	if begun := Earlier(s.Manifest.StartedAt, s.Modified); begun.After(at) {
		at = begun
	}
	return Candidate{
		At: at, Revision: s.Manifest.Revision, Doubtful: s.Manifest.Unconfirmed, Unconfirmed: s.Manifest.Unconfirmed,
		DataDiffers: s.Manifest.DataDiffers, Lineage: s.Manifest.ClusterID,
		// An etcd that others run may keep its cluster ID when it is restored. The owner of its backups is the EtcdBackup.
		Ordered: s.Manifest.Owner.UID != "" && s.Manifest.Owner.UID != s.Manifest.BackupUID,
	}
}
