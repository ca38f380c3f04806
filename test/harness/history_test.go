// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestHistoryCheck(t *testing.T) {
	cut := errors.New("connection reset")
	at := func(o Operation, call, ret int) Operation {
		o.Key, o.Call, o.Return = "k", time.Duration(call), time.Duration(ret)
		return o
	}
	put := func(value string, call, ret int) Operation { return at(Operation{Kind: Put, Value: value}, call, ret) }
	get := func(found string, call, ret int) Operation { return at(Operation{Kind: Get, Found: found}, call, ret) }
	swap := func(old, value string, call, ret int) Operation {
		return at(Operation{Kind: Swap, Old: old, Value: value, Swapped: true}, call, ret)
	}
	rejected := func(old, found string, call, ret int) Operation {
		return at(Operation{Kind: Swap, Old: old, Value: "never", Found: found}, call, ret)
	}
	withoutResponse := func(o Operation) Operation {
		o.Err, o.Swapped = cut, false
		return o
	}
	for name, test := range map[string]struct {
		operations []Operation
		broken     string
	}{
		"nothing":                      {nil, ""},
		"one after the other":          {[]Operation{put("1", 0, 1), get("1", 2, 3), swap("1", "2", 4, 5), get("2", 6, 7)}, ""},
		"an acknowledged one lost":     {[]Operation{put("1", 0, 1), put("2", 2, 3), get("1", 4, 5)}, "Found:1"},
		"everything lost":              {[]Operation{put("1", 0, 1), get("", 2, 3)}, "breaks with"},
		"a stale read":                 {[]Operation{put("1", 0, 1), put("2", 2, 3), get("2", 4, 5), get("1", 6, 7)}, "breaks with"},
		"at the same time":             {[]Operation{put("1", 0, 9), put("2", 0, 9), get("2", 1, 2), get("1", 3, 4)}, ""},
		"back and forth":               {[]Operation{put("1", 0, 9), put("2", 0, 9), get("2", 1, 2), get("1", 3, 4), get("2", 5, 6)}, "breaks with"},
		"two swaps of one value":       {[]Operation{put("1", 0, 1), swap("1", "2", 2, 9), swap("1", "3", 2, 9)}, "breaks with"},
		"a swap that was rejected":     {[]Operation{put("1", 0, 1), rejected("0", "1", 2, 3)}, ""},
		"a swap rejected wrongly":      {[]Operation{put("1", 0, 1), rejected("1", "1", 2, 3)}, "breaks with"},
		"a value from nowhere":         {[]Operation{get("7", 0, 1)}, "breaks with"},
		"no response, carried out":     {[]Operation{withoutResponse(put("1", 0, 1)), get("1", 2, 3)}, ""},
		"no response, not carried out": {[]Operation{withoutResponse(put("1", 0, 1)), get("", 2, 3)}, ""},
		"no response, much later":      {[]Operation{withoutResponse(put("1", 0, 1)), get("", 2, 3), put("2", 4, 5), get("1", 6, 7)}, ""},
		"no response, twice":           {[]Operation{withoutResponse(put("1", 0, 1)), get("1", 2, 3), put("2", 4, 5), get("1", 6, 7)}, "breaks with"},
		"a swap without a response":    {[]Operation{put("1", 0, 1), withoutResponse(swap("1", "2", 2, 3)), get("1", 4, 5), get("2", 6, 7)}, ""},
		"found before it began":        {[]Operation{get("1", 0, 1), withoutResponse(put("1", 2, 3))}, "breaks with"},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(test.operations, time.Minute)
			switch {
			case test.broken == "" && err != nil:
				t.Error(err)
			case test.broken != "" && (err == nil || !strings.Contains(err.Error(), test.broken)):
				t.Errorf("the check returned %[2]v, want an error with %[1]q", test.broken, err)
			}
		})
	}
}

// TestSuccession: the responses of one cluster prove nothing about another cluster, except
// that the old cluster must not respond any more.
func TestSuccession(t *testing.T) {
	t.Parallel()
	put := func(cluster uint64, key, value string, call, back time.Duration) Operation {
		return Operation{Kind: Put, Key: key, Value: value, Cluster: cluster, Call: call, Return: back}
	}
	found := func(cluster uint64, key, value string, call, back time.Duration) Operation {
		return Operation{Kind: Get, Key: key, Found: value, Cluster: cluster, Call: call, Return: back}
	}
	h := &History{operations: []Operation{put(1, "k", "a", 0, 1), found(1, "k", "a", 2, 3), found(2, "k", "", 4, 5), put(2, "k", "b", 6, 7)}}
	if err := h.Check(time.Second); err == nil {
		t.Error("an empty cluster is taken for the one that had data")
	}
	for _, cluster := range []uint64{1, 2} {
		if err := h.Of(cluster).Check(time.Second); err != nil {
			t.Errorf("cluster %d: %v", cluster, err)
		}
	}
	if err := h.Succeeds(1, 2); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]*History{
		"no cluster responds to the clients": {}, "the young one does not": h.Of(1), "the old one did not": h.Of(2),
	} {
		if err := wrong.Succeeds(1, 2); err == nil {
			t.Errorf("%s, and it goes unnoticed", name)
		}
	}
	if err := h.Of(1).Succeeds(1, 1); err == nil {
		t.Error("the old one goes on, and it goes unnoticed")
	}
	withoutResponse := &History{operations: []Operation{{Kind: Put, Key: "k", Value: "c", Err: errors.New("connection reset")}}}
	if h.Responses() != 4 || withoutResponse.Responses() != 0 {
		t.Errorf("%d and %d responses", h.Responses(), withoutResponse.Responses())
	}
	h.add(found(2, "k", "a", 8, 9)) // what only the old one had
	if err := h.Of(2).Check(time.Second); err == nil {
		t.Error("data of the old cluster is in the young one, and it goes unnoticed")
	}
	for name, o := range map[string]Operation{
		"the old cluster responds again": found(1, "k", "a", 8, 9), "a third cluster responds": found(3, "k", "", 8, 9),
	} {
		late := &History{operations: append(h.Operations(), o)}
		if err := late.Succeeds(1, 2); err == nil {
			t.Errorf("%s, and it goes unnoticed", name)
		}
	}
}
