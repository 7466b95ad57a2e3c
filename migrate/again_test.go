package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// mailMapping has an index, and no time of cells of its own.
const mailMapping = `apiVersion: migration/v1
source: {table: Users, key: {hash: {name: id, type: S}}, schema: {mail: S, x: S}, gsis: [{name: byMail, hash: mail, projection: ALL, as: table}]}
target: {table: users, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: user, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

func usersOf(t *testing.T, lines ...string) *source.Source {
	t.Helper()
	return open(t, strings.Join(lines, "\n"))
}

// Loading again after writes of a DynamoDB endpoint would bring back items that it deleted. So
// it is refused, for a source without a time and for a full export; with KeepWrites the written
// items stay unchanged.
func TestLoad_AgainAfterWrites(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	users := func() *source.Source {
		return usersOf(t, `{"id":{"S":"1"},"mail":{"S":"old@x"},"x":{"S":"1"}}`, `{"id":{"S":"2"},"mail":{"S":"two@x"}}`, `{"id":{"S":"3"},"mail":{"S":"three@x"}}`)
	}
	o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, mailMapping)}}}
	if _, err := Load(t.Context(), conn, users(), o); err != nil {
		t.Fatal(err)
	}
	s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: o.Mappings, NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	callEndpoint(t, s, "UpdateItem", `{"TableName":"Users","Key":{"id":{"S":"1"}},"UpdateExpression":"SET mail = :m REMOVE x","ExpressionAttributeValues":{":m":{"S":"new@x"}}}`)
	callEndpoint(t, s, "DeleteItem", `{"TableName":"Users","Key":{"id":{"S":"2"}}}`)
	before := allTables(t, conn)
	_, err = Load(t.Context(), conn, users(), o)
	WantDamage(t, err, source.TargetWritten, "Bigtable table users: a DynamoDB endpoint has written to it since the last load")
	if after := allTables(t, conn); after != before {
		t.Errorf("a load that is refused changed\n%s\nto\n%s", before, after)
	}
	o.KeepWrites = true
	r, err := Load(t.Context(), conn, users(), o)
	if err != nil {
		t.Fatal(err)
	}
	if kept := r.Tables[0].ItemsKept; kept != 1 || len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "the items that the endpoint wrote stay unchanged") {
		t.Errorf("%d items were kept; warnings %q", kept, r.Warnings)
	}
	for key, want := range map[string]string{
		"1": `{"Item":{"id":{"S":"1"},"mail":{"S":"new@x"}}}`, "2": `{"Item":{"id":{"S":"2"},"mail":{"S":"two@x"}}}`, "3": `{"Item":{"id":{"S":"3"},"mail":{"S":"three@x"}}}`,
	} {
		if got := answer(t, s, "GetItem", `{"TableName":"Users","Key":{"id":{"S":"`+key+`"}}}`); got != want {
			t.Errorf("item %s is %s, want %s", key, got, want)
		}
	}
	for mail, n := range map[string]string{"old@x": `"Count":0`, "new@x": `"Count":1`, "two@x": `"Count":1`} {
		got := answer(t, s, "Query", `{"TableName":"Users","IndexName":"byMail","KeyConditionExpression":"mail = :m","ExpressionAttributeValues":{":m":{"S":"`+mail+`"}}}`)
		if !strings.Contains(got, n) {
			t.Errorf("the index has %s of %s, want %s", got, mail, n)
		}
	}
}

func answer(t *testing.T, s *facade.Server, operation, body string) string {
	t.Helper()
	got, err := s.Call(t.Context(), operation, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// Two sources without a time have the same cell times: a second source with other items is
// refused like a later export.
func TestLoad_AnotherUndatedSource(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, mailMapping)}}}
	one := []string{`{"id":{"S":"1"},"mail":{"S":"a@x"}}`, `{"id":{"S":"2"},"mail":{"S":"b@x"}}`}
	load := func(lines []string, mix bool) error {
		o.Mix = mix
		_, err := Load(t.Context(), conn, usersOf(t, lines...), o)
		return err
	}
	if err := load(one, false); err != nil {
		t.Fatal(err)
	}
	if err := load([]string{one[1], one[0]}, false); err != nil {
		t.Errorf("the same items in another order: %v", err)
	}
	before := allTables(t, conn)
	for name, lines := range map[string][]string{
		"fewer": one[:1], "more": append(slices.Clone(one), `{"id":{"S":"3"}}`), "another value": {one[0], `{"id":{"S":"2"},"mail":{"S":"c@x"}}`},
	} {
		WantDamage(t, load(lines, false), source.TargetNewer, "Bigtable table users was loaded from other items")
		if after := allTables(t, conn); after != before {
			t.Errorf("%s: a load that is refused changed\n%s\nto\n%s", name, before, after)
		}
	}
	if err := load(one[:1], true); err != nil {
		t.Fatal(err)
	}
	WantDamage(t, load(one, false), source.TargetNewer, "Bigtable table users was loaded from other items")
}

// If two loads check a new table at the same time, one is refused before it writes a row,
// whether the other one is running or has ended by then.
func TestLoad_TwoAtOnce(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	cutOff := errors.New("cut off")
	for name, sources := range map[string][2]func() *source.Source{
		"two exports": {func() *source.Source { return exports(t, true, before) }, func() *source.Source { return exports(t, true, before, after) }},
		"two files":   {func() *source.Source { return undated(t, before) }, func() *source.Source { return undated(t, after) }},
	} {
		for at := 1; at <= 6; at++ { // the write at which the second load is interrupted; there are five
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				t.Parallel()
				server := newBigtableServer(t)
				o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}}
				second := &failing{ClientConnInterface: server, fail: func(call int, _ *btpb.MutateRowsRequest) error {
					if call > at {
						return cutOff
					}
					return nil
				}}
				var after string
				// It runs when the first load has checked the table, and not yet written.
				conn := beforeCheck{server, sync.OnceFunc(func() {
					if _, err := Load(t.Context(), second, sources[1](), o); err != nil && !errors.Is(err, cutOff) {
						t.Error(err)
					}
					after = allTables(t, server)
				})}
				_, err := Load(t.Context(), conn, sources[0](), o)
				WantDamage(t, err, source.TargetNewer, "Bigtable table t")
				if got := allTables(t, server); got != after {
					t.Errorf("the tables have\n%s\nwant those of the second load\n%s", got, after)
				}
			})
		}
	}
}

// A load that may mix with another one at the same time leaves its own note: the next load is
// judged by it.
func TestLoad_MixAtOnce(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	server := newBigtableServer(t)
	o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}}
	conn := beforeCheck{server, sync.OnceFunc(func() {
		if _, err := Load(t.Context(), server, undated(t, before), o); err != nil {
			t.Error(err)
		}
	})}
	mix := o
	mix.Mix = true
	if _, err := Load(t.Context(), conn, exports(t, true, after), mix); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), server, exports(t, true, after), o); err != nil {
		t.Error(err)
	}
	_, err := Load(t.Context(), server, undated(t, before), o)
	WantDamage(t, err, source.TargetNewer, "Bigtable table t")
}

// beforeCheck calls a function before each conditional write.
type beforeCheck struct {
	grpc.ClientConnInterface
	before func()
}

func (c beforeCheck) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if _, ok := req.(*btpb.CheckAndMutateRowRequest); ok {
		c.before()
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}
