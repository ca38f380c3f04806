// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// HasIPv6 says whether links of this machine can have IPv6 addresses.
func HasIPv6() bool {
	for _, links := range []string{"all", "default"} {
		disabled, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + links + "/disable_ipv6")
		if err != nil || strings.TrimSpace(string(disabled)) != "0" {
			return false
		}
	}
	return true
}

// CheckFree returns an error if the machine already uses one of the ranges that
// the cluster needs, for anything but the cluster itself.
func CheckFree(ctx context.Context, families topology.Families) error {
	for _, f := range families.All() {
		option := "-4"
		if netip.MustParsePrefix(f.LinkCIDR).Addr().Is6() {
			option = "-6"
		}
		if err := checkFree(ctx, option, f.LinkCIDR, f.PodCIDR); err != nil {
			return err
		}
	}
	return nil
}

func checkFree(ctx context.Context, option string, ranges ...string) error {
	out, err := ip(ctx, "-json", option, "route", "show")
	if err != nil {
		return err
	}
	var routes []struct {
		Destination string `json:"dst"`
		Device      string `json:"dev"`
	}
	if err := json.Unmarshal(out, &routes); err != nil {
		return fmt.Errorf("reading the machine's routes: %w", err)
	}
	for _, route := range routes {
		used, err := parseDestination(route.Destination)
		if err != nil || route.Device == topology.HostLink {
			continue // the default route, or ours
		}
		for _, needed := range ranges {
			if netip.MustParsePrefix(needed).Overlaps(used) {
				return fmt.Errorf("the machine has a route to %s (device %s), which the cluster needs as %s: take that interface down first",
					route.Destination, route.Device, needed)
			}
		}
	}
	return nil
}

// parseDestination reads "10.0.0.0/8" or "10.1.2.3".
func parseDestination(s string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix, nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.Prefix(addr.BitLen())
}
