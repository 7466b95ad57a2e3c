package hosts

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/race"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8000": true, "localhost.": true, "a.localhost:1": true, "127.0.0.1:8000": true, "127.9.9.9": true,
		"[::1]:8000": true, "::1": true, "[::ffff:127.0.0.1]:1": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "notlocalhost": false, "127.0.0.1.evil.example": false, "10.0.0.1:8000": false, "[::]:1": false,
	} {
		if got := Local(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestAllowed: names matter for a loopback address, or if some names are allowed.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listens, host string
		allowed       []string
		want          bool
	}{
		{"127.0.0.1:8000", "localhost:8000", nil, true},
		{"127.0.0.1:8000", "evil.example", nil, false},
		{"127.0.0.1:8000", "Desk.Example:1", []string{"desk.example"}, true},
		{"10.0.0.2:8000", "tabletop:8000", nil, true},
		{"10.0.0.2:8000", "10.0.0.2:8000", []string{"desk.example"}, true},
		{"10.0.0.2:8000", "evil.example", []string{"desk.example"}, false},
		{"", "evil.example", nil, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = c.host
		if c.listens != "" {
			addr, err := net.ResolveTCPAddr("tcp", c.listens)
			if err != nil {
				t.Fatal(err)
			}
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
		}
		if got := Allowed(r, c.allowed); got != c.want {
			t.Errorf("at %s, host %s, allowed %q: %v", c.listens, c.host, c.allowed, got)
		}
	}
}

// TestAllowed_Cost: a request to this machine by its address costs no allocation.
func TestAllowed_Cost(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Host = "127.0.0.1:8000"
	if n := testing.AllocsPerRun(100, func() { Allowed(r, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
