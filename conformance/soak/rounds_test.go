package soak

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/testkit"
)

var (
	rounds     = flag.Int("soak.rounds", 0, "how many tables TestRounds makes, fills and deletes; 0 skips it")
	roundBytes = flag.Int("soak.roundbytes", 20<<20, "how much it fills a table with")
)

const (
	// warmRounds is the number of rounds up to the first samples: by then the memory for
	// deleted tables is in use.
	warmRounds = 50
	// sampleRounds is the number of rounds over which samples are averaged: memory is freed in
	// the background, and is sampled somewhere in between.
	sampleRounds = 25
	roundRows    = 100 // rows per request
	roundRowSize = 10 << 10
)

// TestRounds imitates hours of a test suite: it creates a table, fills it and deletes it. The
// resident memory at the end is within a fifth of that after the first 50 tables, each the
// mean of 25 rounds. Nothing else runs in the process meanwhile.
func TestRounds(t *testing.T) { //nolint:paralleltest // it measures the process
	if *rounds <= warmRounds {
		t.Skipf("-soak.rounds=%d, want more than %d", *rounds, warmRounds)
	}
	env := testkit.Start(t)
	admin, data := btapb.NewBigtableTableAdminClient(env.Conn()), btpb.NewBigtableClient(env.Conn())
	parent := "projects/" + env.Project() + "/instances/" + env.Instance()
	var resident []uint64 // after each round
	mean := func() (n uint64) {
		for _, bytes := range resident[len(resident)-sampleRounds:] {
			n += bytes / sampleRounds
		}
		return n
	}
	var warm uint64
	began := time.Now()
	for round := 1; round <= *rounds; round++ {
		id := fmt.Sprintf("t-%d", round)
		if _, err := admin.CreateTable(t.Context(), &btapb.CreateTableRequest{
			Parent: parent, TableId: id, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
		}); err != nil {
			t.Fatal(err)
		}
		for first := 0; first*roundRowSize < *roundBytes; first += roundRows {
			if err := fillRows(t, data, parent+"/tables/"+id, first); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := admin.DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: parent + "/tables/" + id}); err != nil {
			t.Fatal(err)
		}
		now := takeSample()
		resident = append(resident, now.resident)
		if round == warmRounds {
			warm = mean()
		}
		if round%warmRounds == 0 {
			t.Logf("round %d after %v: resident %d MiB, heap %d MiB", round, time.Since(began).Round(time.Second), mean()>>20, now.heap>>20)
		}
	}
	end := mean()
	t.Logf("resident %d -> %d MiB, at most %d", warm>>20, end>>20, slices.Max(resident)>>20)
	if end > warm+warm/5 {
		t.Errorf("resident memory: %d bytes after %d rounds, %d after %d", warm, warmRounds, end, *rounds)
	}
}

// fillRows writes the rows of one request, from number first on.
func fillRows(t *testing.T, data btpb.BigtableClient, table string, first int) error {
	t.Helper()
	req := &btpb.MutateRowsRequest{TableName: table}
	for i := range roundRows {
		value := bytes.Repeat(fmt.Appendf(nil, "%09d ", first+i), roundRowSize/10)
		req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{
			RowKey: fmt.Appendf(nil, "%09d", first+i),
			Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
				FamilyName: "f", ColumnQualifier: []byte("q"), TimestampMicros: 1000, Value: value,
			}}}},
		})
	}
	stream, err := data.MutateRows(t.Context(), req)
	if err != nil {
		return err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range resp.GetEntries() {
			if e.GetStatus().GetCode() != 0 {
				return fmt.Errorf("entry %d: %v", first+int(e.GetIndex()), e.GetStatus())
			}
		}
	}
}
