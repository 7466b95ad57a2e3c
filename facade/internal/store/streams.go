package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

const (
	// goneRowPrefix begins the catalog's rows of tables that are gone and whose
	// streams can still be read; name and id follow.
	goneRowPrefix = "g/"

	// logMargin is how much longer than a stream's records cells of a log are kept.
	logMargin = time.Hour

	// shardRotation is how long a shard takes records.
	shardRotation = 4 * time.Hour
)

// placeLog gives a definition whose stream begins a log, and the stream.
func (ts *tables) placeLog(ctx context.Context, was, def *tabledef.Table) error {
	if !def.StreamEnabled || was.StreamEnabled {
		return nil
	}
	log := &tabledef.Log{Table: newTableID(reservedPrefix+"l.", def.Name, def.ID), Reasons: []string{tabledef.ReasonStream}, View: def.StreamView}
	log.Shards = tabledef.Shards{Rotation: cmp.Or(ts.o.Shards.Rotation, shardRotation), Slots: ts.o.Shards.Slots}
	if len(log.Shards.Slots) == 0 {
		log.Shards.Slots = []int{1}
	}
	at := uint64(ts.o.Now().Truncate(time.Millisecond).UnixNano())
	def.Streams = slices.DeleteFunc(def.Streams, func(s tabledef.Stream) bool { return s.IsGone(ts.o.Now()) })
	// Two streams of one name differ in their labels.
	gone, err := ts.streamsGone(ctx, def.Name)
	if err != nil {
		return err
	}
	at = tabledef.AfterStreams(at, append(gone, def))
	log.Shards.Since = at
	def.StreamLabel = tabledef.StreamLabel(at)
	def.Log = log
	def.Streams = append(def.Streams, tabledef.Stream{Label: def.StreamLabel, View: def.StreamView, Shards: log.Shards})
	_, err = ts.bt.EnsureTable(ctx, log.Table, []layout.Family{{Name: logFamily, GC: layout.GC{MaxAge: tabledef.StreamRetention + logMargin}}}, nil)
	return err
}

// endStream ends the stream of a definition that had one and is not to have it any
// more. No write of the table is under way.
func (ts *tables) endStream(ctx context.Context, was, def *tabledef.Table) error {
	if def.StreamEnabled || !was.StreamEnabled || def.Log == nil {
		return nil
	}
	if err := ts.logs.settleLogs(ctx); err != nil {
		return err
	}
	at, err := ts.logs.sequence.Above(ctx)
	if err != nil {
		return err
	}
	s := &def.Streams[len(def.Streams)-1]
	s.Until, s.Ended = max(at, s.Shards.Since+1), ts.o.Now()
	log := *def.Log
	log.Reasons = slices.DeleteFunc(slices.Clone(log.Reasons), func(r string) bool { return r == tabledef.ReasonStream })
	def.Log = &log
	return nil
}

// keepStreams keeps what is to be known of the streams of a table that goes, with all
// records of its last writes.
func (ts *tables) keepStreams(ctx context.Context, def *tabledef.Table) error {
	if def.Log == nil {
		return nil
	}
	if err := ts.logs.settleLogs(ctx); err != nil {
		return err
	}
	if err := ts.logs.clearRecords(ctx, 0); err != nil {
		return err
	}
	text, err := tabledef.Encode(def)
	if err != nil {
		return err
	}
	return ts.bt.MutateRow(ctx, ts.o.Catalog, goneRow(def.Name, def.ID), []*btpb.Mutation{
		btclient.SetCell(catalogFamily, definitionQualifier, ts.nowMicros(), text),
	})
}

func goneRow(name, id string) []byte { return []byte(goneRowPrefix + name + "/" + id) }

// streamsGone returns the tables that are gone, those of one name or ("") all.
func (ts *tables) streamsGone(ctx context.Context, name string) (defs []*tabledef.Table, err error) {
	prefix := []byte(goneRowPrefix)
	if name != "" {
		prefix = goneRow(name, "")
	}
	read := btclient.Read{Table: ts.o.Catalog, Spans: []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}, Filter: btclient.Newest(1)}
	for row, err := range ts.bt.Read(ctx, read) {
		if err != nil {
			return nil, err
		}
		for _, c := range row.Cells {
			def, err := tabledef.Decode(c.Value)
			if err != nil {
				return nil, err
			}
			defs = append(defs, def)
		}
	}
	return defs, nil
}

// TablesWithStreams returns the tables of a name, or ("") all, that have streams or
// had them lately: those that are gone among them, with status DELETING.
func (ts *tables) TablesWithStreams(ctx context.Context, name string) ([]*tabledef.Table, error) {
	names := []string{name}
	if name == "" {
		var err error
		if names, _, err = ts.cat.ListTables(ctx, "", maxCatalogTables); err != nil {
			return nil, err
		}
	}
	defs, err := ts.streamsGone(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := ts.cat.refresh(ctx, name)
		if err != nil {
			continue // it is gone, or of a mapping that is not served: nobody writes to it
		}
		if def := c.def.At(ts.o.Now()); len(def.Streams) > 0 && !slices.ContainsFunc(defs, func(d *tabledef.Table) bool { return d.ID == def.ID }) {
			defs = append(defs, def)
		}
	}
	slices.SortFunc(defs, func(a, b *tabledef.Table) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.StreamLabel, b.StreamLabel))
	})
	return defs, nil
}

// tidyLogs removes what is left of writes and of streams that nobody can read any
// more.
func (ts *tables) tidyLogs(ctx context.Context) error {
	if err := ts.logs.settleLogs(ctx); err != nil {
		return err
	}
	if err := ts.logs.clearRecords(ctx, 0); err != nil {
		return err
	}
	defs, err := ts.streamsGone(ctx, "")
	if err != nil {
		return err
	}
	for _, def := range defs {
		if slices.ContainsFunc(def.Streams, func(s tabledef.Stream) bool { return !s.IsGone(ts.o.Now()) }) {
			continue
		}
		if err := ts.bt.DropTable(ctx, def.Log.Table); err != nil {
			return err
		}
		if err := ts.deleteRows(ctx, ts.o.Catalog, [][]byte{goneRow(def.Name, def.ID)}); err != nil {
			return err
		}
	}
	return nil
}

var _ changelog.Ceilings = (*logs)(nil)
