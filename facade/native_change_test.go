package facade

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// TestForeignRows checks that the server logs a table at its start if another mapping laid out
// the rows, and logs none whose rows it can read.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	const row = "0123"
	for column, warned := range map[string]bool{"Details": false, "Other": true} {
		const file = "../fixtures/subjects/s3-adjacency/mapping.yaml"
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := layout.Load(file, src)
		if err != nil {
			t.Fatal(err)
		}
		var o Options
		newTestServer(t, func(given *Options) {
			given.Mappings = []*mapping.Mapping{(*mapping.Mapping)(m)}
			o = *given
		})
		_, err = btpb.NewBigtableClient(o.Conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
			TableName: "projects/" + defaultProject + "/instances/" + defaultInstance + "/tables/" + m.TargetTable(),
			RowKey:    []byte(row), Mutations: []*btpb.Mutation{btclient.SetCell("Invoice", []byte(column), 1694359308000000, []byte(`{"discount":0.1}`))},
		})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		again, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "did another mapping lay them out") && strings.Contains(log.String(), row); got != warned {
			t.Errorf("column %q: warned %t, want %t: %s", column, got, warned, &log)
		}
	}
}

// TestNativeChange checks that another client's change to the rows of a mapped table results
// in an error that names the place, and that no client retries.
func TestNativeChange(t *testing.T) {
	t.Parallel()
	const file = "../fixtures/subjects/s2-video/mapping.yaml"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := layout.Load(file, src)
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	s := newTestServer(t, func(given *Options) {
		given.Mappings = []*mapping.Mapping{(*mapping.Mapping)(m)}
		o = *given
	})
	table := "projects/" + defaultProject + "/instances/" + defaultInstance + "/tables/" + m.TargetTable()
	refused := func(status int, texts ...string) {
		t.Helper()
		for _, body := range []string{
			`{"TableName":"Videos"}`,
			`{"TableName":"Videos","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"0998"}}}`,
		} {
			operation := "Scan"
			if strings.Contains(body, "Key") {
				operation = "Query"
			}
			w := post(s, operation, body)
			if w.Code != status {
				t.Errorf("%s: status %d: %s", operation, w.Code, w.Body)
			}
			for _, text := range texts {
				if !strings.Contains(w.Body.String(), text) {
					t.Errorf("%s: no %q in %s", operation, text, w.Body)
				}
			}
		}
	}

	_, err = btpb.NewBigtableClient(o.Conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
		TableName: table, RowKey: []byte("0998"), Mutations: []*btpb.Mutation{btclient.SetCell("a", []byte("Likes"), 1000, []byte("short"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	refused(http.StatusBadRequest, "ValidationException", `0998`, `Likes`)

	if _, err := btapb.NewBigtableTableAdminClient(o.Conn).DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: table}); err != nil {
		t.Fatal(err)
	}
	refused(http.StatusBadRequest, "ResourceNotFoundException", m.TargetTable())
}

// TestNativeChange_CatalogLost: if a Bigtable has lost the endpoint's catalog, for example an
// emulator that was started again, the error does not claim that the requested table is
// missing. Only operations on tables report that.
func TestNativeChange_CatalogLost(t *testing.T) {
	t.Parallel()
	var o Options
	s := newTestServer(t, func(given *Options) { o = *given })
	name := "projects/" + defaultProject + "/instances/" + defaultInstance + "/tables/" + store.CatalogTable
	if _, err := btapb.NewBigtableTableAdminClient(o.Conn).DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	for operation, body := range map[string]string{
		"ListTables": `{}`,
		"CreateTable": `{"TableName":"orders","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
			"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`,
		"PutItem": `{"TableName":"orders","Item":{"id":{"S":"a"}}}`,
	} {
		w := post(s, operation, body)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "ServiceUnavailable") || !strings.Contains(w.Body.String(), "restart this server, too") {
			t.Errorf("%s: status %d: %s", operation, w.Code, w.Body)
		}
	}
}
