// Package hosts checks the host name in a request to a local server. Any web page can make a
// browser send requests to a host name that resolves to this machine. Only the host name
// distinguishes such requests from others.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Allowed reports whether the host of a request is this machine or one of the allowed names, which
// have the form of Name. If the list of allowed names is empty, a request to an address that is not
// loopback may name any host.
func Allowed(r *http.Request, allowed []string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return AllowedAt(local, r.Host, allowed)
}

// AllowedAt acts like Allowed for a request to host that arrived at the address local, which is nil
// if it is unknown.
func AllowedAt(local net.Addr, host string, allowed []string) bool {
	if Local(host) || slices.Contains(allowed, Name(host)) {
		return true
	}
	if local == nil || Local(local.String()) {
		return false
	}
	return len(allowed) == 0 || Name(host) == Name(local.String())
}

// Local reports whether a HOST or HOST:PORT is a loopback name or address.
func Local(host string) bool {
	name := Name(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// Name returns the host name in a HOST or HOST:PORT, in lower case.
func Name(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
