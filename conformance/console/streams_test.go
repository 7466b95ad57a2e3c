package console

import (
	"fmt"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// changeStream turns on the change stream of a table.
func (s *server) changeStream(t *testing.T, table string) {
	t.Helper()
	_, err := btapb.NewBigtableTableAdminClient(s.lab.Bigtable().Conn()).UpdateTable(t.Context(), &btapb.UpdateTableRequest{
		Table: &btapb.Table{
			Name:               s.lab.TableName(table),
			ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)},
		},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"change_stream_config"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

const streamThings = `{"TableName":"things","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`

// TestStreams: the records of both endpoints about one write are on one line, live, and a
// record of only one shows the reason. A table without a stream shows how to enable one.
// Written data is shown and never executed.
func TestStreams(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	m, err := srv.ddb.Mapping(t.Context(), "things")
	if err != nil {
		t.Fatal(err)
	}
	rows := m.TargetTable()
	p := open(t, ctx, srv)

	// No record yet, from either endpoint.
	p.visit("/streams?dynamodb=things&bigtable=tabletop/" + rows)
	p.until("!!document.querySelector('[data-none=records]') && !!document.querySelector('[data-none=changes]')")
	p.sound("no streams")
	p.shoot("streams-none")

	p.visit("/streams")
	p.until("document.querySelector('main').innerText.includes('No table has a stream yet')")
	srv.query(t, "UpdateTable", streamThings)
	p.until("document.querySelector('main tbody a')?.textContent === 'things'")
	srv.changeStream(t, rows)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"amount":{"N":"1"}}}`)
	srv.call(t, "UpdateItem", `{"TableName":"things","Key":{"id":{"S":"a"}},"UpdateExpression":"SET amount = :t","ExpressionAttributeValues":{":t":{"N":"2"}}}`)
	p.visit("/streams")
	p.shoot("streams-list")
	p.sound("streams")
	p.click("main tbody a")
	p.ready("/streams")
	p.until("document.querySelectorAll('[data-write=both]').length === 2")
	if n := ask[int](p, "document.querySelectorAll('[data-write]').length"); n != 2 {
		t.Errorf("%d lines of two writes", n)
	}

	// A concurrent write, and one of Bigtable's endpoint.
	srv.call(t, "DeleteItem", `{"TableName":"things","Key":{"id":{"S":"a"}}}`)
	p.until("document.querySelectorAll('[data-write=both]').length === 3")
	if err := srv.client().MutateRow(t.Context(), rows, []byte("by hand"), btclient.AppendSets(nil, []btclient.Cell{{Family: m.Families()[0].Name, Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")}})); err != nil {
		t.Fatal(err)
	}
	p.until("document.querySelectorAll('[data-write=bigtable]').length === 1")

	// The second of two earlier lines: the update, by the keyboard.
	for range 3 {
		p.press("ArrowDown", "[aria-label='Writes, the newest first']")
	}
	p.until("document.querySelector('[data-attribute=amount]')?.innerText.replace(/\\s+/g, ' ') === 'amount {\"N\":\"1\"} {\"N\":\"2\"}'")
	p.until("!!document.querySelector('[data-entry=SetCell]')")
	p.sound("a write")
	p.shoot("streams")

	for _, text := range texts {
		srv.call(t, "PutItem", fmt.Sprintf(`{"TableName":"things","Item":{"id":{"S":%s},%s:{"S":%[1]s}}}`, quoted(text[:min(len(text), 1000)]), quoted("x"+text)))
	}
	p.until(fmt.Sprintf("document.querySelectorAll('[data-write=both]').length === %d", 3+len(texts)))
	for range texts {
		p.press("ArrowDown", "[aria-label='Writes, the newest first']")
		p.sound("hostile writes")
	}
	p.shoot("streams-hostile")
}
