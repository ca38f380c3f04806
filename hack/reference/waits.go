// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/planner/restore"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// waitsPage lists what the controller waits for.
func waitsPage() string {
	var b strings.Builder
	b.WriteString(generated + `
# Waits

The controller waits when it cannot go on safely.
Each wait has a reason, a bound and a remedy.
After the bound the object is ` + "`Stalled`" + `, and the controller still continues as soon as the cause has ended.
The status says more than this page: of an EtcdCluster ` + "`status.blockedBy`" + ` names the members, and ` + "`status.blockedBy.unblock`" + ` the command.
To a bound with "+ copy" one second is added for each 2 MiB of the database, or of the largest one for which the cluster has room.
The bounds of an EtcdRestore count from its last step: its start, the verified backup, the pre-restore backup or the request to the cluster.
`)
	for i, table := range []waits.Table{cluster.Waits, backup.Waits, restore.Waits} {
		fmt.Fprintf(&b, "\n## Waits of an %s\n\n| reason | waits for | ended by | Stalled after | then |\n|---|---|---|---|---|\n", kinds[i])
		for _, reason := range table.Reasons() {
			row := table[reason]
			bound := fmt.Sprintf("%d min", int(row.Bound.Minutes()))
			if row.Copies {
				bound += " + copy"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(reason), cell(row.For), row.EndedBy, bound, cell(row.Remedy))
		}
	}
	return b.String()
}
