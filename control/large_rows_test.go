package control_test

import (
	"bytes"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestHeat_LargeRows: rows are marked by their own size, whatever the load on them, and a row
// beyond the limit is not read to its end.
func TestHeat_LargeRows(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	e := newEnv(t)
	cell := 26 << 20
	if !long.Enabled() {
		cell = 26 << 10
		e.api.SetRowLevels(100<<10, 256<<10) // the levels of the lint rule, divided by 1,024
	}
	e.createRows("t")
	client := btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{})
	value := bytes.Repeat([]byte("x"), cell)
	put := func(row string, versions int) {
		for i := range versions {
			if err := client.MutateRow(t.Context(), "t", []byte(row), []*btpb.Mutation{btclient.SetCell("f", []byte("q"), int64(i+1)*1000, value)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("beyond", 11)
	put("fair", 3)
	put("large", 4)
	for range 5 { // as many bytes as a large row, always in the same cell
		if err := client.MutateRow(t.Context(), "t", []byte("rewritten"), []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, value)}); err != nil {
			t.Fatal(err)
		}
	}
	var m struct {
		heatMap
		Large []struct {
			Key   struct{ Text string }
			Bytes int64
			More  bool
		}
	}
	e.must("GET", "heat/i/t", "", &m)
	if len(m.Keys) != 4 {
		t.Fatalf("%d ranges of keys", len(m.Keys))
	}
	if len(m.Large) != 2 {
		t.Fatalf("large rows: %+v", m.Large)
	}
	if got := m.Large[0]; got.Key.Text != "beyond" || !got.More || got.Bytes != 10*int64(cell+1) {
		t.Errorf("beyond: %+v", got)
	}
	if got := m.Large[1]; got.Key.Text != "large" || got.More || got.Bytes != 4*int64(cell+1) {
		t.Errorf("large: %+v", got)
	}
}
