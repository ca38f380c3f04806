// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc64"
)

// Names of the checksums in Written.
const (
	ChecksumCRC64NVME = "CRC64NVME"
	ChecksumCRC64ECMA = "CRC64ECMA"
	ChecksumCRC32C    = "CRC32C"
	ChecksumMD5       = "MD5"
)

// Written is what Put has stored.
type Written struct {
	// Size in bytes.
	Size int64
	// Checksum names the checksum by which the store has proved that it holds what was
	// sent: the store computed it from what arrived, and Put has compared it with its own.
	// It covers every byte. Empty if the store returned none.
	Checksum string
}

// CRC64 is a polynomial of CRC-64 with its table, as hash/crc64 has them.
type CRC64 struct {
	polynomial uint64
	table      *crc64.Table
}

// nvme is the polynomial of NVMe, reversed.
const nvme = 0x9a6c9329ac4bc9b5

var (
	// NVME is what S3 calls CRC64NVME and what Azure computes of each block.
	NVME = CRC64{polynomial: nvme, table: crc64.MakeTable(nvme)}
	// ECMA is what OSS computes.
	ECMA = CRC64{polynomial: crc64.ECMA, table: crc64.MakeTable(crc64.ECMA)}
)

// Sum is the CRC-64 of some bytes and how many they were.
type Sum struct {
	CRC  uint64
	Size int64
}

// Of returns the sum of data.
func (c CRC64) Of(data []byte) Sum {
	return Sum{CRC: crc64.Checksum(data, c.table), Size: int64(len(data))}
}

// Join returns the sum of what a and b were computed of, one after the other.
func (c CRC64) Join(a, b Sum) Sum {
	return Sum{CRC: c.times(c.power(b.Size), a.CRC) ^ b.CRC, Size: a.Size + b.Size}
}

// The polynomials over GF(2) below are reversed, as those of hash/crc64: the highest bit is
// the constant term.
const one = uint64(1) << 63

// power returns x to the power of 8n, modulo the polynomial.
func (c CRC64) power(n int64) uint64 {
	result, square := one, one>>1
	for range 3 { // x^8
		square = c.times(square, square)
	}
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = c.times(result, square)
		}
		square = c.times(square, square)
	}
	return result
}

// times returns the product of a and b modulo the polynomial.
func (c CRC64) times(a, b uint64) uint64 {
	product := uint64(0)
	for bit := one; bit > 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry == 1 {
			b ^= c.polynomial
		}
	}
	return product
}

// Base64 is the form in which S3 names the sum.
func (s Sum) Base64() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, s.CRC))
}

// Damaged returns the error of a store that has other bytes than were sent. The figures are
// checksums.
func Damaged(key, checksum, sent, got string) error {
	return &Error{
		Op: "put", Key: key, Kind: ErrDamaged,
		Cause: fmt.Errorf("the %s of what was sent is %s, the store has %s", checksum, sent, got),
	}
}

// Withdraw deletes an object that a store has made visible and that is not what was sent,
// and returns the error that says so.
func Withdraw(ctx context.Context, s Store, key string, damaged error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return WithCleanUp(damaged, s.Delete(ctx, key))
}
