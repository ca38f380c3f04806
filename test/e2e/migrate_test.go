// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// legacy is an etcd that a StatefulSet runs. Its pods have the labels by which the tests find members.
const legacy = `apiVersion: v1
kind: Service
metadata: {name: legacy}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {etcd_cluster: legacy}
  ports: [{name: client, port: 2379}, {name: peer, port: 2380}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: legacy}
spec:
  serviceName: legacy
  selector: {matchLabels: {etcd_cluster: legacy}}
  template:
    metadata: {labels: {app: etcd, etcd_cluster: legacy}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: etcd
          image: quay.io/coreos/etcd:v%s
          command:
            - etcd
            - --name=legacy-0
            - --data-dir=/data/etcd
            - --listen-client-urls=http://0.0.0.0:2379
            - --advertise-client-urls=http://legacy-0.legacy:2379
            - --listen-peer-urls=http://0.0.0.0:2380
            - --initial-advertise-peer-urls=http://legacy-0.legacy:2380
            - --initial-cluster=legacy-0=http://legacy-0.legacy:2380
          readinessProbe: {tcpSocket: {port: 2379}, periodSeconds: 1}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`

// TestMigrateSnapshot moves the data of a StatefulSet to a new EtcdCluster. A write that reaches
// the source after its snapshot is named.
func TestMigrateSnapshot(t *testing.T) {
	t.Parallel()
	s := startFor(t, 5*time.Minute)
	p := s.buildPlugin()
	s.volume()
	s.apply(fmt.Sprintf(legacy, etcdVersion))
	s.kubectl("rollout", "status", "statefulset/legacy", "--timeout=2m")
	source := s.cluster("legacy").members
	data, err := source.Fill(s.ctx(), 500, 100)
	s.must(err, "fill the source")

	migrate := []string{"migrate", "snapshot", "taken", "--endpoints=http://legacy-0.legacy." + s.namespace + ".svc:2379", "--pvc=backups", "--size=1"}
	out, _ := p.run(failure.CodeDone, migrate...)
	s.contains(out, "Migration by snapshot of http://legacy-0.legacy", "Stop all writers now", "Nothing was changed. To carry the plan out, add --yes.")
	if objects := s.kubectl("get", "etcdclusters,etcdbackups,etcdrestores", "-o", "name"); objects != "" {
		t.Fatalf("the dry run has created %s", objects)
	}
	migrate = append(migrate, "--yes", "--timeout=3m")
	out, _ = p.run(failure.CodeDone, migrate...)
	s.contains(out, "Migration is done: "+s.namespace+"/taken has every write of the source, up to revision 501.")
	taken := s.cluster("taken")
	taken.settle(1)
	taken.holds(data)

	// The check alone is made again: the migration continues where it was.
	s.must(source.Put(s.ctx(), "late", "write"), "write to the source")
	s.kubectl("delete", "etcdbackup/taken-migration-after")
	_, said := p.run(failure.CodeNotMet, migrate...)
	s.contains(said, "revisions 502 to 502 of the source are missing in "+s.namespace+"/taken", "delete --ignore-not-found etcdrestore/taken-migration ")
}
