package console

import (
	"fmt"
	"strings"
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
	p.until("document.querySelector('[data-none]')?.innerText.includes('The table has no streams.')")
	p.sound("no streams")
	p.shoot("streams-none")

	p.visit("/streams")
	p.until("document.querySelector('main').innerText.includes('No table has a stream yet')")
	if got := ask[string](p, "document.querySelector('[data-enable] button').textContent"); got != "Enable both streams" {
		t.Errorf("the button is %q", got)
	}
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
	p.until("document.querySelector('[data-attribute=amount]')?.innerText.replace(/\\s+/g, ' ') === 'amount N 1 N 2'")
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

// TestStreams_Enable: a button enables the missing streams of a table, from the list and from its
// own page. A write then has both records.
func TestStreams_Enable(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.createTable(t, "rows", "f")
	p := open(t, ctx, srv)
	p.visit("/streams")
	const choices = "[...document.querySelectorAll('[data-enable] option')].map((o) => o.textContent).join()"
	if got := ask[string](p, choices); got != "things,tabletop / rows" {
		t.Errorf("the tables without a stream are %s", got)
	}
	p.pushButton("Enable both streams")
	p.until("location.search.includes('dynamodb=things') && document.querySelector('main').innerText.includes('0 DynamoDB records, 0 Bigtable records')")
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"}}}`)
	p.until("document.querySelectorAll('[data-write=both]').length === 1")
	p.sound("a write after both were enabled")

	p.visit("/streams")
	if got := ask[string](p, choices); got != "tabletop / rows" {
		t.Errorf("then they are %s", got)
	}
	p.shoot("streams-list")
	p.visit("/streams?bigtable=tabletop/rows")
	p.until("document.querySelector('[data-none]')?.innerText.includes('The Bigtable table has no change stream.')")
	p.pushButton("Enable the stream")
	p.until("!document.querySelector('[data-none]')")
	srv.set(t, "rows", "r", btclient.Cell{Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")})
	p.until("document.querySelectorAll('[data-write=bigtable]').length === 1")

	// One side has a stream: the other's is enabled alone.
	srv.call(t, "CreateTable", strings.Replace(createThings, "things", "others", 1))
	m, err := srv.ddb.Mapping(t.Context(), "others")
	if err != nil {
		t.Fatal(err)
	}
	srv.changeStream(t, m.TargetTable())
	p.visit("/streams?dynamodb=others&bigtable=tabletop/" + m.TargetTable())
	p.until("document.querySelector('[data-none]')?.innerText.includes('The DynamoDB table has no stream.')")
	p.pushButton("Enable the stream")
	p.until("!document.querySelector('[data-none]')")
	p.sound("the streams of a table")
}
