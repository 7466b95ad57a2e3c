package testkit

import (
	"errors"
	"io"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// Dump returns all rows of a Bigtable table of the environment's instance as
// the canonical text that fixtures' golden files have: rows by key, cells in
// storage order, one a line. The DynamoDB door's bookkeeping is left out, and
// so are rows that hold nothing else.
//
// table is the id of the Bigtable table. For a DynamoDB table without a
// mapping the id is not its name.
func (e *Env) Dump(table string) string {
	e.tb.Helper()
	name := "projects/" + e.Project() + "/instances/" + e.Instance() + "/tables/" + table
	stream, err := btpb.NewBigtableClient(e.emu.Conn()).ReadRows(e.ctx, &btpb.ReadRowsRequest{TableName: name})
	if err != nil {
		e.tb.Fatalf("testkit: dump of %s: %v", table, err)
	}
	var (
		out   []byte
		row   mapping.Row
		cell  mapping.Cell // the cell that chunks add to
		split bool         // its value goes on in the next chunk
	)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return string(out)
		}
		if err != nil {
			e.tb.Fatalf("testkit: dump of %s: %v", table, err)
		}
		for _, c := range resp.GetChunks() {
			if len(c.GetRowKey()) > 0 {
				row.Key = c.GetRowKey()
			}
			if f := c.GetFamilyName(); f != nil {
				cell.Family = f.GetValue()
			}
			if q := c.GetQualifier(); q != nil {
				cell.Qualifier = q.GetValue()
			}
			if !split { // else it continues the cell and repeats nothing
				cell.Timestamp, cell.Value = c.GetTimestampMicros(), nil
			}
			cell.Value = append(cell.Value, c.GetValue()...)
			split = c.GetValueSize() > 0
			if !split && cell.Family != mapping.FamilyState {
				row.Cells = append(row.Cells, cell)
			}
			if c.GetCommitRow() {
				if len(row.Cells) > 0 {
					out = mapping.FormatRow(out, row)
				}
				row = mapping.Row{}
			}
		}
	}
}
