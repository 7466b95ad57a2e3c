package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// unchanged is the change of an edit that leaves the row as it is.
const unchanged = "none"

// timeOfWrite makes a cell get the time of the write, as in Bigtable's API.
const timeOfWrite = -1

// edit is the effect of a write of an item on its row.
type edit struct {
	*changedRow
	Kept    int    `json:"kept,omitempty"`    // number of cells that differ only in the time of the write
	Refused string `json:"refused,omitempty"` // reason for a refusal; all else is then empty
}

// previewItem returns the cells that a PutItem or a DeleteItem would change, and changes
// nothing. It excludes entries of secondary indexes, which are rows with other keys; the calls
// of the operation show them.
func (s *Server) previewItem(r *http.Request) (any, error) {
	var in struct {
		Put    json.RawMessage `json:"put"`    // an item
		Delete json.RawMessage `json:"delete"` // the key of an item
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	given, name := in.Put, "put"
	if given == nil {
		given, name = in.Delete, "delete"
	}
	if given == nil || in.Put != nil && in.Delete != nil {
		return nil, badRequest(`want either "put" with an item, or "delete" with a key`)
	}
	item, err := attr.UnmarshalItem(given)
	if err != nil {
		return nil, badRequest("%s is %.200s, want attributes in DynamoDB's JSON: %v", name, given, err)
	}
	m, err := s.opts.Endpoint.Mapping(own(r), r.PathValue("table"))
	if err != nil {
		return nil, err
	}
	at, err := (*layout.Mapping)(m).Locate(item)
	if err != nil {
		return edit{Refused: err.Error()}, nil
	}
	if at.Derived {
		return edit{Refused: "the item is a copy of its highest version: write that one"}, nil
	}
	was, is := mapping.Row{Key: at.Row}, mapping.Row{Key: at.Row}
	if in.Put != nil {
		placed, err := m.Place(item, noTime)
		if err != nil {
			return edit{Refused: err.Error()}, nil
		}
		is = placed.Row
	}
	options := s.opts.Lab.Options()
	client := btclient.New(s.opts.Lab.Bigtable().Conn(), options.Project, options.Instance, btclient.Options{})
	for found, err := range client.Read(own(r), btclient.Read{Table: m.TargetTable(), Keys: [][]byte{at.Row}}) {
		if err != nil {
			return nil, err
		}
		// The cells of another item in this row stay: the endpoint refuses to overwrite it.
		if old, err := m.Item(found, item); err == nil && old == nil {
			continue
		}
		for _, c := range found.Cells {
			if slices.ContainsFunc(at.Own, func(e lens.Extent) bool { return e.Covers(c) }) {
				was.Cells = append(was.Cells, c)
			}
		}
	}
	out := difference(m, was, is)
	if in.Put == nil && len(was.Cells) == 0 {
		out.Change = unchanged // the item does not exist
	}
	return out, nil
}

// difference returns the edit from one row to another, with the cells that only one of them
// has.
func difference(m *mapping.Mapping, was, is mapping.Row) edit {
	how := changed
	switch {
	case len(was.Cells) == 0:
		how = added
	case len(is.Cells) == 0:
		how = removed
	}
	out := edit{changedRow: newChangedRow([]*mapping.Mapping{m}, how, was, is)}
	slices.SortFunc(is.Cells, func(a, b mapping.Cell) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	untimed := func(x mapping.Cell) string {
		x.Timestamp = timeOfWrite
		return cellName(x)
	}
	times := map[string]int64{} // of the newest cell that is otherwise equal
	for _, x := range slices.Backward(was.Cells) {
		times[untimed(x)] = x.Timestamp
	}
	for i, x := range is.Cells {
		if x.Timestamp != noTime {
			continue
		}
		is.Cells[i].Timestamp = timeOfWrite
		if t, ok := times[untimed(x)]; ok {
			is.Cells[i].Timestamp = t
		}
	}
	var c changes
	out.Before = c.cells(out.changedRow, was.Cells, is.Cells)
	more := out.More
	out.After = c.cells(out.changedRow, is.Cells, was.Cells)
	out.Kept = len(is.Cells) - len(out.After) - (out.More - more)
	return out
}
