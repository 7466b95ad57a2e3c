package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// TestHome_Names: of 100,000 tables the home page shows some, with the total, and finds those
// whose name contains the filter's text.
func TestHome_Names(t *testing.T) {
	const tables = 100_000
	ctx := browser(t)
	srv := start(t)
	// Creating all these tables would take longer than the rest of the tests: only the list is
	// faked.
	to, err := url.Parse(srv.url)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for i := range tables {
		fmt.Fprintf(&list, `%s{"name":"projects/tabletop/instances/tabletop/tables/t-%06d","instance":"tabletop","table":"t-%06d","families":[{"name":"f","gc":"never"}]}`, strings.Repeat(",", min(i, 1)), i, i)
	}
	behind := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/tables" {
			behind.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"bigtable":[%s],"dynamodb":[]}`, list.String())
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	srv.url = proxy.URL
	p := open(t, ctx, srv)
	shown := func(filter string) (n int) {
		t.Helper()
		return ask[int](p, fmt.Sprintf(`(() => {
			const filter = document.querySelector('main input[type=search]');
			filter.value = %q;
			filter.dispatchEvent(new Event('input', { bubbles: true }));
			return filter.closest('.bar').parentElement.querySelectorAll('tbody tr').length;
		})()`, filter))
	}
	p.until("!!document.querySelector('main input[type=search]')")
	said := func() string { return ask[string](p, "document.querySelector('main').innerText") }
	for _, c := range []struct {
		filter string
		rows   int
		says   string
	}{{"", 500, "the first 500 of 100,000 tables"}, {"t-09999", 10, "10 tables"}, {"t-099999", 1, "t-099999"}, {"none", 0, "0 tables"}, {"t-0123", 100, "100 tables"}} {
		if n := shown(c.filter); n != c.rows || !strings.Contains(said(), c.says) {
			t.Errorf("%q shows %d tables, want %d: %.300s", c.filter, n, c.rows, said())
		}
	}
	p.sound("100,000 names")
}
