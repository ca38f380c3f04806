// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore_test

import (
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

func newTable() genericstore.Table[*cluster] {
	return genericstore.Table[*cluster]{
		Columns: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Age"}},
		Row: func(c *cluster, now time.Time) []any {
			return []any{c.Name, genericstore.Age(c.CreationTimestamp, now)}
		},
		Fallback: rest.NewDefaultTableConvertor(v1beta2.Resource("etcdclusters")),
		Clock:    clocktesting.NewFakePassiveClock(time.Unix(61, 0)),
	}
}

func TestTableOfAList(t *testing.T) {
	t.Parallel()
	remaining := int64(5)
	list := &v1beta2.EtcdClusterList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "token", RemainingItemCount: &remaining},
		Items:    []v1beta2.EtcdCluster{*stored(), *stored()},
	}
	table, err := newTable().ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2 || table.Rows[0].Cells[0] != "a" || table.Rows[0].Cells[1] != "60s" {
		t.Errorf("unexpected rows %v", table.Rows)
	}
	if table.Rows[1].Object.Object != &list.Items[1] {
		t.Error("a row does not hold its object")
	}
	if table.ResourceVersion != "9" || table.Continue != "token" || *table.RemainingItemCount != remaining {
		t.Errorf("unexpected list metadata %v", table.ListMeta)
	}
	if len(table.ColumnDefinitions) != 2 {
		t.Errorf("unexpected columns %v", table.ColumnDefinitions)
	}
}

func TestTableWithoutHeaders(t *testing.T) {
	t.Parallel()
	table, err := newTable().ConvertToTable(t.Context(), stored(), &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.ColumnDefinitions) != 0 || len(table.Rows) != 1 || table.ResourceVersion != "42" {
		t.Errorf("unexpected table %v", table)
	}
}

func TestTableOfAnotherKind(t *testing.T) {
	t.Parallel()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	table, err := newTable().ConvertToTable(t.Context(), scale, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 || table.ColumnDefinitions[1].Name != "Created At" {
		t.Errorf("unexpected table %v, want the default one", table)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1.0Ki", 20480: "20Ki", 1 << 20: "1.0Mi", 25 << 20: "25Mi",
		3<<30 + 1<<29: "3.5Gi", 5 << 40: "5.0Ti", 5000 << 40: "5000Ti",
	} {
		if got := genericstore.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}
