package console

import (
	"fmt"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// scrollAll is a script that scrolls a list to its end, frame by frame, and returns the cost.
const scrollAll = `(async () => {
	const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
	const list = document.querySelector("[aria-label='%s']"), want = %d;
	const out = {nodes: 0, seen: 0, bytes: 0, fetches: 0, opening: [], long: []}, start = performance.now();
	const note = (e) => (e.startTime < start ? out.opening : out.long).push(Math.round(e.duration));
	new PerformanceObserver((some) => some.getEntries().forEach(note)).observe({type: 'longtask', buffered: true});
	performance.clearResourceTimings();
	performance.setResourceTimingBufferSize(10_000);
	for (let step = 0; step < 20_000 && out.seen < want; step++) {
		list.scrollTop += 40 * list.clientHeight;
		await frame();
		out.nodes = Math.max(out.nodes, document.querySelectorAll('*').length);
		out.seen = Number(list.querySelector('[aria-posinset]:last-child')?.ariaPosInSet ?? 0);
	}
	for (const e of performance.getEntriesByType('resource')) {
		out.fetches++;
		out.bytes = Math.max(out.bytes, e.decodedBodySize);
	}
	return out;
})()`

// TestScroll: a table of many rows, and one of many columns, can be scrolled to their ends
// with few elements and small fetches. The time of tasks depends on the machine: it is logged,
// and not asserted.
func TestScroll(t *testing.T) {
	const rows, wide, columns = 100_000, 10, 10_000
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "long", "f")
	srv.createTable(t, "wide", "f")
	client := btpb.NewBigtableClient(srv.lab.Bigtable().Conn())
	for first := 0; first < rows; first += 5000 {
		req := &btpb.MutateRowsRequest{TableName: "projects/tabletop/instances/tabletop/tables/long"}
		for i := first; i < first+5000; i++ {
			req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{
				RowKey: fmt.Appendf(nil, "row-%06d", i), Mutations: []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("value"))},
			})
		}
		stream, err := client.MutateRows(t.Context(), req)
		for err == nil {
			_, err = stream.Recv()
		}
	}
	for row := range wide {
		var cells []btclient.Cell
		for i := range columns {
			cells = append(cells, btclient.Cell{Family: "f", Qualifier: fmt.Appendf(nil, "column-%05d", i), Timestamp: 1000, Value: []byte("value")})
		}
		srv.set(t, "wide", fmt.Sprintf("row-%d", row), cells...)
	}
	p := open(t, ctx, srv)
	for _, list := range []struct {
		table, label string
		lines        int
	}{{"long", "Row keys", rows}, {"wide", "Cells", columns}} {
		p.visit("/t/tabletop/" + list.table + "/rows")
		p.until("!!document.querySelector('[data-cell]')")
		got := ask[struct {
			Nodes, Seen, Bytes, Fetches int
			Opening, Long               []int
		}](p, fmt.Sprintf(scrollAll, list.label, list.lines))
		// Tasks above 50 ms are logged and not rejected: their time depends on the machine and
		// its load. Their causes have limits here: elements, and bytes of a fetch.
		t.Logf("%s: %d elements at most, %d fetches of at most %d bytes, tasks above 50 ms: %v, at the opening %v", list.table, got.Nodes, got.Fetches, got.Bytes, got.Long, got.Opening)
		if got.Seen != list.lines {
			t.Errorf("%s: line %d of %d is the last that is seen", list.table, got.Seen, list.lines)
		}
		if got.Nodes > 1000 || got.Bytes > 1<<20 {
			t.Errorf("%s: %d elements and %d bytes in one fetch", list.table, got.Nodes, got.Bytes)
		}
		p.sound(list.table)
	}
}
