package control_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestPages: pages and their files need no token and contain no data. They have the policy
// that excludes foreign scripts, and are served only to hosts of this machine. A client that
// does not accept HTML gets the list of the API.
func TestPages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	get := func(path, accept, host string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		if host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(text)
	}
	const html = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
	_, _, page := get("/", html, "")
	if !strings.Contains(page, `src="/static/app.js"`) {
		t.Errorf("a browser gets %s", page)
	}
	if _, _, text := get("/", "*/*", ""); !strings.HasPrefix(text, "Tabletop: the control API") {
		t.Errorf("a program gets %s", text)
	}
	for _, path := range []string{"/", "/requests", "/lab", "/query", "/streams", "/migration", "/t/i/orders", "/t/i/orders/rows", "/d/orders", "/keys/i/orders", "/static/app.js", "/static/style.css"} {
		code, header, text := get(path, html, "")
		policy := header.Get("Content-Security-Policy")
		if code != http.StatusOK || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: %d %v", path, code, header)
		}
		if strings.HasPrefix(path, "/static/") == (text == page) {
			t.Errorf("%s is answered by something else: %.100s", path, text)
		}
		if strings.Contains(text, token) {
			t.Errorf("%s has the token", path)
		}
		if code, _, _ := get(path, html, "evil.example"); code != http.StatusForbidden {
			t.Errorf("%s of another host: %d", path, code)
		}
	}
	for _, path := range []string{"/nowhere", "/t/i", "/t//orders", "/requests/7"} {
		if code, header, text := get(path, html, ""); code != http.StatusNotFound || text != page || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %.100s", path, code, text)
		}
		if code, _, text := get(path, "*/*", ""); code != http.StatusNotFound || !strings.Contains(text, `"not_found"`) {
			t.Errorf("a program gets for %s: %d %.100s", path, code, text)
		}
	}
	for _, path := range []string{"/static/nothing.js", "/api/v1/nothing"} {
		if code, _, text := get(path, html, ""); code == http.StatusOK || text == page {
			t.Errorf("%s: %d %.100s", path, code, text)
		}
	}
	if code, _, _ := get("/api/v1/info", html, ""); code != http.StatusUnauthorized {
		t.Errorf("the API without a token: %d", code)
	}
}
