package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// OwnTables is the prefix of the ids of the DynamoDB endpoint's internal tables: its catalog, and
// the indexes of the default layout.
const OwnTables = "_tabletop."

// Dump returns all rows of a Bigtable table of the lab's instance in the format of the golden files
// of fixtures: rows by key, and cells in storage order, one per line. It omits the DynamoDB
// endpoint's bookkeeping cells, and rows that contain only such cells.
//
// table is the id of the Bigtable table, or the name of a DynamoDB table whose items it holds.
func (l *Lab) Dump(ctx context.Context, table string) (string, error) {
	var out []byte
	err := l.ReadRows(ctx, l.Resolve(ctx, table), nil, func(row cells.Row) { out = rowtext.FormatRow(out, row) })
	return string(out), wrap("dump of "+table, err)
}

// DumpAll returns all tables of all instances as the text of a golden file. Each table has a line
// with its name, one comment per family with its garbage-collection rule, and its rows as in Dump.
// Tables are sorted by name; tables outside the lab's instance have their full name. The DynamoDB
// endpoint's internal tables are omitted. Comments before the tables hold, as JSON, the created
// instances, clusters, app profiles, authorized views and schema bundles, and the IAM policies that
// were set; implicit resources are omitted. Comments at the end hold the endpoint's lines: changes
// of DynamoDB items that have not yet reached their Kinesis data stream, in the stream's format.
func (l *Lab) DumpAll(ctx context.Context) (string, error) {
	var out []byte
	resources, err := l.emu.Resources()
	if err != nil {
		return "", wrap("dump", err)
	}
	for _, r := range resources {
		text, err := canonicalJSON(r.Message)
		if err != nil {
			return "", wrap("dump of "+r.Name, err)
		}
		out = fmt.Appendf(out, "# %s %s %s\n", r.Kind, r.Name, text)
	}
	own := l.TableName("")
	for _, t := range l.db.Tables("") {
		if _, id, _ := strings.Cut(t.Name, "/tables/"); strings.HasPrefix(id, OwnTables) {
			continue
		}
		out = fmt.Appendf(out, "table %s\n", strings.TrimPrefix(t.Name, own))
		for _, f := range t.Families { // in order of creation
			if !rowtext.HiddenFamily(f.Name) {
				out = fmt.Appendf(out, "# family %s, gc %s\n", f.Name, RuleText(&f.GC))
			}
		}
		if err := l.ReadRows(ctx, t.Name, nil, func(row cells.Row) { out = rowtext.FormatRow(out, row) }); err != nil {
			return "", wrap("dump of "+t.Name, err)
		}
	}
	out, err = l.endpoint.AppendDump(Probe(ctx), out)
	return string(out), wrap("dump of the endpoint", err)
}

// canonicalJSON returns the JSON of a message, without the random spaces of protojson.
func canonicalJSON(m proto.Message) ([]byte, error) {
	loose, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, loose)
	return out.Bytes(), err
}

// RuleText returns a garbage-collection rule in the syntax of the cbt tool.
func RuleText(r *engine.GCRule) string {
	joiner := " or "
	switch r.Kind {
	case engine.NoGC:
		return "never"
	case engine.MaxVersions:
		return fmt.Sprintf("maxversions=%d", r.Versions)
	case engine.MaxAge:
		return "maxage=" + r.Age.String()
	case engine.Intersection:
		joiner = " and "
	case engine.Union:
	}
	parts := make([]string, len(r.Rules))
	for i := range r.Rules {
		parts[i] = RuleText(&r.Rules[i])
		if len(r.Rules[i].Rules) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, joiner)
}

// dumpDeadline is the longest wait of a dump for the next row. The dump of a lab that hangs
// then fails, with the reason.
const dumpDeadline = time.Minute

// ReadRows passes the rows of the table with the given full name to visit, or only the row with the
// given key. It omits the DynamoDB endpoint's bookkeeping cells, and rows that contain only such
// cells.
func (l *Lab) ReadRows(ctx context.Context, table string, key []byte, visit func(cells.Row)) error {
	parent, id, _ := strings.Cut(table, "/tables/")
	project, instance, _ := strings.Cut(strings.TrimPrefix(parent, "projects/"), "/instances/")
	read := btclient.Read{Table: id, Spans: []btclient.Span{{}}}
	if key != nil {
		read = btclient.Read{Table: id, Keys: [][]byte{key}}
	}
	for row, err := range btclient.New(l.emu.Conn(), project, instance, btclient.Options{Deadline: dumpDeadline}).Read(Probe(ctx), read) {
		if err != nil {
			return err
		}
		row.Cells = slices.DeleteFunc(row.Cells, rowtext.Hidden)
		if len(row.Cells) > 0 {
			visit(row)
		}
	}
	return nil
}
