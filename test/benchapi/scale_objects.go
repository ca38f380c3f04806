// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// scaleTemplates is how many objects are made through the API. Each has resources of its own.
	scaleTemplates = 10
	// eachNamespace is how many objects a namespace has.
	eachNamespace = 100
	scaleMembers  = 3
	templateSpace = "default"
	userManager   = "kubectl-client-side-apply"
	ownManager    = "etcd-operator-controller"
	mergePatch    = "application/merge-patch+json"
	// storagePrefix is where the API server stores EtcdClusters.
	storagePrefix = "/registry/etcd.database.coreos.com/etcdclusters/"
	// writeBatch is the number of objects in one transaction of etcd, which allows 128 operations.
	writeBatch = 100
	// progressEvery is how many objects are written between two lines of progress.
	progressEvery = 20_000
)

// errCopies means that the copies would not be what the API server stores.
var errCopies = errors.New("the API server stores another encoding than the benchmark; correct writeCopies")

func scaleName(i int) string      { return fmt.Sprintf("etcd-%06d", i) }
func scaleNamespace(i int) string { return fmt.Sprintf("team-%05d", i/eachNamespace) }
func scaleMember(cluster string, i int) string {
	return fmt.Sprintf("%s-%d%s", cluster, i, cluster[len(cluster)-4:]+"x7k2p")
}

// newScaleCluster returns an object as its author writes it.
func newScaleCluster(flavor int, namespace, name string) *v1beta2.EtcdCluster {
	quantity := resource.MustParse
	memory, disk := quantity(fmt.Sprintf("%dGi", 1+flavor%4)), quantity(fmt.Sprintf("%dGi", 10*(1+flavor)))
	return &v1beta2.EtcdCluster{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "EtcdCluster"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"},
		},
		Spec: v1beta2.ClusterSpec{
			Replicas: ptr.To[int32](scaleMembers), Version: "3.6.16",
			Pod: &v1beta2.PodPolicy{
				AntiAffinity: true,
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: quantity(fmt.Sprintf("%dm", 100*(1+flavor%3))), corev1.ResourceMemory: memory},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
				},
				PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: disk}},
				},
			},
		},
	}
}

// scaleStatus returns the status that the controller writes for a cluster whose members are healthy.
func scaleStatus(cluster *v1beta2.EtcdCluster) v1beta2.ClusterStatus {
	const clusterID, firstID = 0xcdf818194e3a8c32, 0x8e9e05c521646940
	o := planner.Observed{
		Now: cluster.CreationTimestamp.Add(45 * time.Second), Cluster: cluster, BootstrapName: scaleMember(cluster.Name, 0), Template: "declared",
		Record: planner.Record{State: planner.Current, Record: resources.Record{
			BootstrapMember: scaleMember(cluster.Name, 0), ClusterID: fmt.Sprintf("%x", uint64(clusterID)),
			Log: resources.LogRecord{ClusterID: fmt.Sprintf("%x", uint64(clusterID)), Minor: 6, Readable: true},
		}},
		PeerService: planner.Current, ClientService: planner.Current,
		PodDisruptionBudget: planner.PodDisruptionBudget{State: planner.Current, MinAvailable: 2},
		Etcd:                planner.Etcd{Linearizable: true, ClusterID: clusterID},
	}
	for i := range scaleMembers {
		name := scaleMember(cluster.Name, i)
		o.Etcd.Members = append(o.Etcd.Members, planner.Member{
			ID: firstID + uint64(i), Name: name, Started: true, Health: planner.Healthy, Leader: firstID,
			Version: cluster.Spec.Version, DBSize: 20<<20 + 4096*int64(i), RaftIndex: 100_000,
		})
		o.Pods = append(o.Pods, planner.Pod{
			Name: name, UID: "pod-" + name, Node: fmt.Sprintf("worker-%02d.example.com", i), Owned: true, Running: true, Ready: true,
			Role: planner.PodVoter, InEndpoints: true, Version: cluster.Spec.Version, Template: o.Template,
		})
		o.PVCs = append(o.PVCs, planner.PVC{Name: name, UID: "pvc-" + name, Owned: true, Version: cluster.Spec.Version})
	}
	return planner.Status(o, planner.Decide(o))
}

// makeTemplates makes objects with the requests of a user and of the controller: create, add the
// finalizer, write the status twice.
func (r *scaleRun) makeTemplates(ctx context.Context) ([]*v1beta2.EtcdCluster, error) {
	var made []*v1beta2.EtcdCluster
	for i := range scaleTemplates {
		// The names are those of objects behind the last copy, and as long.
		name := scaleName(r.settings.objects + i)
		at := r.direct.url(templateSpace, "/"+name)
		body, err := r.direct.body(newScaleCluster(i, templateSpace, name), formatJSON)
		if err != nil {
			return nil, err
		}
		cluster := &v1beta2.EtcdCluster{}
		steps := []func() call{
			func() call {
				return call{method: http.MethodPost, url: r.direct.url(templateSpace, "?fieldManager="+userManager), body: body}
			},
			func() call {
				patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, resources.Finalizer)
				return call{method: http.MethodPatch, url: at + "?fieldManager=" + ownManager, contentType: mergePatch, body: []byte(patch)}
			},
		}
		// The second status has the conditions of a cluster that was observed before.
		write := func() call {
			cluster.Status = scaleStatus(cluster)
			body, err = r.direct.body(cluster, formatJSON)
			return call{method: http.MethodPut, url: at + "/status?fieldManager=" + ownManager, body: body}
		}
		for _, step := range append(steps, write, write) {
			request := step()
			if err != nil {
				return nil, err
			}
			if request.contentType == "" {
				request.contentType = accepts[formatJSON]
			}
			content, err := send(ctx, r.direct.clients.admin, request)
			if err != nil {
				return nil, err
			}
			cluster = &v1beta2.EtcdCluster{}
			if err := json.Unmarshal(content, cluster); err != nil {
				return nil, err
			}
		}
		made = append(made, cluster)
	}
	return made, nil
}

// makeNamespaces makes the namespaces, without which the API server rejects new objects.
func (r *scaleRun) makeNamespaces(ctx context.Context) error {
	number := (r.settings.objects + eachNamespace - 1) / eachNamespace
	say("making %d namespaces", number)
	_, err := r.repeat(ctx, manyClients, box{requests: number, limit: loadPatience}, func(ctx context.Context, i int) (int64, error) {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, scaleNamespace(i*eachNamespace))
		return count(ctx, r.aggregated.clients.admin, call{
			method: http.MethodPost, url: r.kubeURL + "/api/v1/namespaces", contentType: accepts[formatJSON], body: []byte(body),
		})
	})
	return err
}

// writeCopies writes copies of the templates to etcd.
func (r *scaleRun) writeCopies(ctx context.Context, templates []*v1beta2.EtcdCluster) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{r.etcdURL[ownEtcd]}, DialTimeout: startPatience})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, template := range templates {
		if err := checkEncoding(ctx, client, template); err != nil {
			return err
		}
	}
	begun, size := time.Now(), 0
	for first := 0; first < r.settings.objects; first += writeBatch {
		var puts []clientv3.Op
		for i := first; i < min(first+writeBatch, r.settings.objects); i++ {
			copied := copyTemplate(templates[i%len(templates)], i)
			value, err := storedValue(copied)
			if err != nil {
				return err
			}
			key := storagePrefix + copied.Namespace + "/" + copied.Name
			size += len(key) + len(value)
			puts = append(puts, clientv3.OpPut(key, string(value)))
		}
		if _, err := client.Txn(ctx).Then(puts...).Commit(); err != nil {
			return fmt.Errorf("write objects from %d: %w", first, err)
		}
		if first > 0 && first%progressEvery == 0 {
			say("%d of %d objects after %.0f s", first, r.settings.objects, time.Since(begun).Seconds())
		}
	}
	r.found.Stored = float64(size) / float64(r.settings.objects)
	return nil
}

// storedValue encodes an object as the API server stores it.
func storedValue(cluster *v1beta2.EtcdCluster) ([]byte, error) {
	stored := cluster.DeepCopy()
	stored.ResourceVersion = ""
	stored.TypeMeta = metav1.TypeMeta{}
	return runtime.Encode(protobufCodec(), stored)
}

// checkEncoding fails if the API server has stored other bytes than storedValue returns.
func checkEncoding(ctx context.Context, client *clientv3.Client, cluster *v1beta2.EtcdCluster) error {
	response, err := client.Get(ctx, storagePrefix+cluster.Namespace+"/"+cluster.Name)
	if err != nil {
		return err
	}
	want, err := storedValue(cluster)
	if err != nil {
		return err
	}
	if len(response.Kvs) != 1 || !bytes.Equal(response.Kvs[0].Value, want) {
		return fmt.Errorf("%w: %s", errCopies, cluster.Name)
	}
	return nil
}

// copyTemplate returns the template as another object: names, UID, member IDs, nodes and times are its own.
func copyTemplate(template *v1beta2.EtcdCluster, i int) *v1beta2.EtcdCluster {
	c := template.DeepCopy()
	c.Namespace, c.Name = scaleNamespace(i), scaleName(i)
	c.UID = uuid.NewUUID()
	pairs := make([]string, 0, 2*scaleMembers+2)
	for m := range scaleMembers {
		pairs = append(pairs, scaleMember(template.Name, m), scaleMember(c.Name, m))
	}
	renamed := strings.NewReplacer(append(pairs, template.Name, c.Name)...).Replace
	c.Labels["app.kubernetes.io/name"] = c.Name
	age := time.Duration(i) * 17 * time.Second
	for f := range c.ManagedFields {
		entry := &c.ManagedFields[f]
		entry.Time = ptr.To(metav1.NewTime(entry.Time.Add(-age)))
		entry.FieldsV1 = metav1.NewFieldsV1(renamed(entry.FieldsV1.GetRawString()))
	}
	c.CreationTimestamp = metav1.NewTime(c.CreationTimestamp.Add(-age))
	for j := range c.Status.Conditions {
		condition := &c.Status.Conditions[j]
		condition.LastUpdateTime = c.CreationTimestamp.Add(45 * time.Second).UTC().Format(time.RFC3339)
		condition.LastTransitionTime = condition.LastUpdateTime
	}
	s := &c.Status
	s.ServiceName, s.Selector, s.Leader = renamed(s.ServiceName), renamed(s.Selector), renamed(s.Leader)
	for m := range s.Members.Ready {
		s.Members.Ready[m] = renamed(s.Members.Ready[m])
	}
	for m := range s.MemberStatuses {
		member := &s.MemberStatuses[m]
		member.Name, member.Pod, member.Claim = renamed(member.Name), renamed(member.Pod), renamed(member.Claim)
		member.ID = fmt.Sprintf("%016x", uint64(0x8e9e05c5_00000000)+uint64(i)*16+uint64(m)) // #nosec G115 -- both are small
		member.Node = fmt.Sprintf("worker-%04d.example.com", (i+m)%5000)
	}
	return c
}
