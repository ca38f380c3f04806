// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An object can be as large as a request, and every part of it wrong. These bound the
// response: how much of a wrong value it repeats, and how many errors it names.
const (
	maxEchoed = 128
	maxErrors = 100
)

// maxSeconds bounds durations that are counted in seconds, so that no reader of the
// object overflows a time.Duration.
const maxSeconds = 1 << 31

func echo(value string) string { return echoAt(value, maxEchoed) }

func echoAt(value string, limit int) string {
	if len(value) <= limit {
		return value
	}
	return strings.ToValidUTF8(value[:limit], "") + "..."
}

// bounded is applied last, because ratchet compares whole values.
func bounded(errs field.ErrorList) field.ErrorList {
	left := len(errs) - maxErrors
	if left > 0 {
		errs = append(slices.Clip(errs[:maxErrors]), &field.Error{
			Type: field.ErrorTypeForbidden, Field: "...", Detail: fmt.Sprintf("%d more errors are not shown", left),
		})
	}
	for _, err := range errs {
		err.Field = echo(err.Field)
		err.Detail = echoAt(err.Detail, 4*maxEchoed)
		if text, ok := err.BadValue.(string); ok {
			err.BadValue = echo(text)
		}
	}
	return errs
}

func invalid(path *field.Path, value, detail string, args ...any) *field.Error {
	return field.Invalid(path, value, fmt.Sprintf(detail, args...))
}

func forbidden(path *field.Path, detail string, args ...any) *field.Error {
	return field.Forbidden(path, fmt.Sprintf(detail, args...))
}

// validateEnum accepts the empty value: what is required says so itself.
func validateEnum[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// validateObjectName checks a reference to an object whose name is a DNS subdomain,
// as a Secret's is. The empty name is accepted.
func validateObjectName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return reasons(path, name, apivalidation.NameIsDNSSubdomain(name, false))
}

func requireObjectName(name string, path *field.Path, what string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, what)}
	}
	return validateObjectName(name, path)
}

func reasons(path *field.Path, value string, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, invalid(path, value, "%s", message))
	}
	return errs
}

func validateSeconds(value int64, path *field.Path) field.ErrorList {
	if value < 0 || value > maxSeconds {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be between 0 and %d seconds", maxSeconds))}
	}
	return nil
}

func hasControl(value string) bool {
	return strings.ContainsFunc(value, unicode.IsControl)
}

func hasSpaceOrControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// endpointRules says what an endpoint may look like.
type endpointRules struct {
	schemeOptional bool
	portRequired   bool
	example        string
}

// validateEndpoint checks an address of a server. Errors never repeat user
// information, because that can be a password.
func validateEndpoint(endpoint string, path *field.Path, rules endpointRules) field.ErrorList {
	if strings.Contains(endpoint, "@") {
		return field.ErrorList{forbidden(path, "must not contain credentials; put them into a Secret and name it, and write the address as %s", rules.example)}
	}
	full := endpoint
	if rules.schemeOptional && !strings.Contains(endpoint, "://") {
		full = "https://" + endpoint
	}
	parsed, err := url.Parse(full)
	switch {
	case err != nil:
		return field.ErrorList{invalid(path, endpoint, "must be an address such as %s", rules.example)}
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return field.ErrorList{invalid(path, endpoint, "must begin with http:// or https://, such as %s", rules.example)}
	case strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.ForceQuery || strings.Contains(endpoint, "#"):
		return field.ErrorList{invalid(path, endpoint, "must not have a path, query or fragment, such as %s", rules.example)}
	}
	return append(validateHost(parsed.Hostname(), endpoint, path, rules), validatePort(parsed, endpoint, path, rules)...)
}

func validatePort(parsed *url.URL, endpoint string, path *field.Path, rules endpointRules) field.ErrorList {
	text := parsed.Port()
	if text == "" {
		if !rules.portRequired && !strings.HasSuffix(parsed.Host, ":") {
			return nil
		}
		return field.ErrorList{invalid(path, endpoint, "must name a port, such as %s", rules.example)}
	}
	if port, err := strconv.ParseUint(text, 10, 16); err != nil || port == 0 {
		return field.ErrorList{invalid(path, endpoint, "must have a port between 1 and 65535")}
	}
	return nil
}

// hostPattern allows underscores, which host names of some stores have.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

func validateHost(host, endpoint string, path *field.Path, rules endpointRules) field.ErrorList {
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		if addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
			return field.ErrorList{invalid(path, endpoint, "must not be a link-local, multicast or unspecified address: those are never a server of this kind")}
		}
		return nil
	}
	if len(host) > utilvalidation.DNS1123SubdomainMaxLength || !hostPattern.MatchString(host) {
		return field.ErrorList{invalid(path, endpoint, "must have a host name or an IP address, such as %s", rules.example)}
	}
	return nil
}
