package emu

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/rowchunks"
	"github.com/tabletop-emu/tabletop/internal/rowmerge"
)

// vector is one case of the published conformance tests of ReadRows: chunks from a server, and
// the resulting cells or error in a client.
type vector struct {
	Description string
	Chunks      []json.RawMessage
	Results     []struct {
		RowKey, FamilyName, Qualifier, TimestampMicros, Value, Label string

		Error bool
	}
}

// vectors reads the cases from the client library's module.
func vectors(t *testing.T) []vector {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "cloud.google.com/go/bigtable").Output()
	if err != nil {
		t.Skipf("the vectors are read from the module cache, where the go command finds them: %v", err)
	}
	src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal", "conformance", "testdata", "readrows.json"))
	if err != nil {
		t.Fatalf("the client library came without its vectors: %v", err)
	}
	var file struct{ ReadRowsTests []vector }
	if err := json.Unmarshal(src, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.ReadRowsTests) < 40 {
		t.Fatalf("%d vectors", len(file.ReadRowsTests))
	}
	return file.ReadRowsTests
}

// rows returns the rows that a client merges from the chunks, and whether an error follows.
func (v vector) rows(t *testing.T) (rows []row, fails bool) {
	t.Helper()
	for _, r := range v.Results {
		if r.Error {
			return rows, true
		}
		var micros int64
		if r.TimestampMicros != "" {
			var err error
			if micros, err = strconv.ParseInt(r.TimestampMicros, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		if len(rows) == 0 || rows[len(rows)-1].key != r.RowKey {
			rows = append(rows, row{key: r.RowKey})
		}
		c := cell{family: r.FamilyName, qualifier: r.Qualifier, micros: micros, value: r.Value}
		if r.Label != "" {
			c.labels = []string{r.Label}
		}
		last := &rows[len(rows)-1]
		last.cells = append(last.cells, c)
	}
	return rows, false
}

// chunkServer answers ReadRows of table "/case-n" with responses[n].
type chunkServer struct {
	btpb.UnimplementedBigtableServer
	responses [][]*btpb.ReadRowsResponse
}

func (s *chunkServer) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	name := req.GetTableName()
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil || n >= len(s.responses) {
		return status.Error(codes.NotFound, name)
	}
	for _, r := range s.responses[n] {
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	return nil
}

// mergedRows merges responses as Tabletop's own clients do.
func mergedRows(responses []*btpb.ReadRowsResponse) (rows []row, err error) {
	m := rowmerge.New(false, func(c rowmerge.Cell) cell {
		return cell{c.Family, string(c.Qualifier), c.TimestampMicros, string(c.Value), c.Labels}
	})
	for _, resp := range responses {
		for r, err := range m.Merge(resp) {
			if err != nil {
				return rows, err
			}
			rows = append(rows, row{string(r.Key), r.Cells})
		}
	}
	return rows, m.End()
}

// officialRows reads a table with the official client, which does not return labels.
func officialRows(ctx context.Context, table *bigtable.Table) ([]row, error) {
	var rows []row
	err := table.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		out := row{key: r.Key()}
		var families []string
		for f := range r {
			families = append(families, f)
		}
		slices.Sort(families)
		for _, f := range families {
			for _, i := range r[f] {
				out.cells = append(out.cells, cell{family: f, qualifier: strings.TrimPrefix(i.Column, f+":"), micros: int64(i.Timestamp), value: string(i.Value)})
			}
		}
		rows = append(rows, out)
		return true
	})
	return rows, err
}

func withoutLabels(rows []row) []row {
	out := make([]row, len(rows))
	for i, r := range rows {
		out[i] = row{key: r.key}
		for _, c := range r.cells {
			c.labels = nil
			out[i].cells = append(out[i].cells, c)
		}
	}
	return out
}

// TestReadRows_ConformanceVectors checks this server with the published vectors. They are for
// clients: from chunks to rows. So the test encodes the rows of each valid vector as chunks,
// stores and reads them, and the official client must merge the same rows. internal/rowmerge
// must merge them too. Both clients must reject the chunks of invalid vectors; otherwise they
// could not check this server's chunks.
func TestReadRows_ConformanceVectors(t *testing.T) {
	t.Parallel()
	all := vectors(t)

	// The chunks of rowchunks, and the chunks of the file.
	written, given := &chunkServer{}, &chunkServer{}
	for _, v := range all {
		rows, fails := v.rows(t)
		var responses []*btpb.ReadRowsResponse
		if !fails {
			w := &rowchunks.Writer{Send: func(r *btpb.ReadRowsResponse) error {
				responses = append(responses, r)
				return nil
			}}
			for _, r := range rows {
				w.Begin([]byte(r.key))
				for _, c := range r.cells {
					fc := filter.Cell{Family: c.family, Qualifier: []byte(c.qualifier), TimestampMicros: c.micros, Value: []byte(c.value), Label: strings.Join(c.labels, "")}
					if err := w.Add(&fc); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.Commit(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		written.responses = append(written.responses, responses)
		resp := &btpb.ReadRowsResponse{}
		for _, raw := range v.Chunks {
			c := &btpb.ReadRowsResponse_CellChunk{}
			if err := protojson.Unmarshal(raw, c); err != nil {
				t.Fatalf("%s: %v", v.Description, err)
			}
			resp.Chunks = append(resp.Chunks, c)
		}
		given.responses = append(given.responses, []*btpb.ReadRowsResponse{resp})
	}
	serve := func(s *chunkServer) *grpc.ClientConn {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		g := grpc.NewServer()
		btpb.RegisterBigtableServer(g, s)
		done := make(chan error, 1)
		go func() { done <- g.Serve(l) }()
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = conn.Close()
			g.Stop()
			<-done
		})
		return conn
	}
	writtenConn, givenConn := serve(written), serve(given)
	chunked, err := bigtable.NewClientWithConfig(t.Context(), "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(writtenConn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chunked.Close() })
	e := newEnv(t)
	stored, _ := e.clients()

	valid, invalid, kept := 0, 0, 0
	for n, v := range all {
		table := fmt.Sprintf("case-%d", n)
		want, fails := v.rows(t)
		merged, err := mergedRows(given.responses[n])
		if g, w := (result{rows: merged}).text(), (result{rows: want}).text(); g != w || (err != nil) != fails {
			t.Errorf("%s: rowmerge makes\n%s%v, want\n%s, and an error: %v", v.Description, g, err, w, fails)
		}
		if fails {
			invalid++
			got, err := readRows(t.Context(), btpb.NewBigtableClient(givenConn), &btpb.ReadRowsRequest{TableName: table})
			if err == nil {
				t.Errorf("%s: the chunks were merged", v.Description)
			}
			if g, w := (result{rows: got.rows}).text(), (result{rows: want}).text(); g != w {
				t.Errorf("%s: before the breach\n%swant\n%s", v.Description, g, w)
			}
			continue
		}
		valid++
		got, err := readRows(t.Context(), btpb.NewBigtableClient(writtenConn), &btpb.ReadRowsRequest{TableName: table})
		if g, w := got.text(), (result{rows: want}).text(); err != nil || g != w {
			t.Errorf("%s: chunks merge to\n%s%v, want\n%s", v.Description, g, err, w)
		}
		want = withoutLabels(want)
		text := result{rows: want}.text()
		rows, err := officialRows(t.Context(), chunked.Open(table))
		if g := (result{rows: rows}).text(); err != nil || g != text {
			t.Errorf("%s: the client merges chunks to\n%s%v, want\n%s", v.Description, g, err, text)
		}
		// The same through the store, where a column has one cell per timestamp.
		if v.Description == "empty cell chunk" {
			continue
		}
		kept++
		create := &btapb.CreateTableRequest{Parent: testInstance, TableId: table, Table: &btapb.Table{
			Granularity: btapb.Table_MICROS, ColumnFamilies: map[string]*btapb.ColumnFamily{},
		}}
		for _, r := range want {
			for _, c := range r.cells {
				create.Table.ColumnFamilies[c.family] = &btapb.ColumnFamily{}
			}
		}
		if _, err := e.admin.CreateTable(e.ctx(), create); err != nil {
			t.Fatal(err)
		}
		for _, r := range want {
			var muts []*btpb.Mutation
			for _, c := range r.cells {
				muts = append(muts, set(c.family, c.qualifier, c.micros, c.value))
			}
			req := &btpb.MutateRowRequest{TableName: testInstance + "/tables/" + table, RowKey: []byte(r.key), Mutations: muts}
			if _, err := e.data.MutateRow(e.ctx(), req); err != nil {
				t.Fatal(err)
			}
		}
		rows, err = officialRows(t.Context(), stored.Open(table))
		if g := (result{rows: rows}).text(); err != nil || g != text {
			t.Errorf("%s: the client reads\n%s%v, want\n%s", v.Description, g, err, text)
		}
	}
	if valid < 25 || invalid < 10 || kept < valid-1 {
		t.Errorf("%d valid vectors, %d invalid, %d through the store", valid, invalid, kept)
	}
}
