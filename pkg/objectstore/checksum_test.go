// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"fmt"
	"testing"
)

// TestCRC64KnownValues pins the two polynomials to the check values that their
// specifications give for the nine digits.
func TestCRC64KnownValues(t *testing.T) {
	digits := []byte("123456789")
	if got := NVME.Of(digits); got.CRC != 0xae8b14860a799888 || got.Size != 9 {
		t.Errorf("NVME: %x of %d bytes", got.CRC, got.Size)
	}
	if got := ECMA.Of(digits).CRC; got != 0x995dc9bbdf1939fa {
		t.Errorf("ECMA: %x", got)
	}
	if got := (Sum{CRC: 0xae8b14860a799888}).Base64(); got != "rosUhgp5mIg=" {
		t.Errorf("base64: %s", got)
	}
}

func TestCRC64OfPartsIsThatOfTheWhole(t *testing.T) {
	data := make([]byte, 100_003)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	for name, c := range map[string]CRC64{"nvme": NVME, "ecma": ECMA} {
		for _, cuts := range [][]int{{0}, {1}, {50_000}, {len(data)}, {1, 2, 65_536, 100_000}} {
			t.Run(fmt.Sprint(name, cuts), func(t *testing.T) {
				sum, from := Sum{}, 0
				for _, to := range append(cuts, len(data)) {
					sum, from = c.Join(sum, c.Of(data[from:to])), to
				}
				if want := c.Of(data); sum != want {
					t.Errorf("got %+v, want %+v", sum, want)
				}
			})
		}
	}
}
