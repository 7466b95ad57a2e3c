package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

// callLog counts the calls of a store by their purpose.
type callLog struct {
	mu    sync.Mutex
	order []string // purposes, by their first call
	calls map[string]int
}

func (c *callLog) add(req any, base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := purpose(req, base)
	if c.calls[what] == 0 {
		c.order = append(c.order, what)
	}
	c.calls[what]++
}

func (c *callLog) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := make([]string, len(c.order))
	for i, what := range c.order {
		parts[i] = fmt.Sprintf("%d %s", c.calls[what], what)
	}
	return strings.Join(parts, ", ")
}

// purpose returns the purpose of a call of a transaction on the table base.
func purpose(req any, base string) string {
	sets := func(muts []*btpb.Mutation, qualifier byte, value []byte) bool {
		return slices.ContainsFunc(muts, func(m *btpb.Mutation) bool {
			set := m.GetSetCell()
			return set.GetFamilyName() == lens.FamilyState && set.GetColumnQualifier()[0] == qualifier && bytes.HasPrefix(set.GetValue(), value)
		})
	}
	switch r := req.(type) {
	case *btpb.ReadRowsRequest:
		switch key := r.GetRows().GetRowKeys()[0]; {
		case strings.HasSuffix(r.GetTableName(), "/"+base):
			return fmt.Sprintf("read of %d", len(r.GetRows().GetRowKeys()))
		case bytes.HasPrefix(key, []byte(requestRowPrefix)):
			return "token read"
		default:
			return "record read"
		}
	case *btpb.MutateRowRequest:
		return "removal"
	case *btpb.CheckAndMutateRowRequest:
		yes, no := r.GetTrueMutations(), r.GetFalseMutations()
		switch key := r.GetRowKey(); {
		case bytes.HasPrefix(key, []byte(transactionRowPrefix)) && len(yes) == 0:
			return "record"
		case bytes.HasPrefix(key, []byte(transactionRowPrefix)):
			return "decision"
		case bytes.HasPrefix(key, []byte(requestRowPrefix)):
			return "token write"
		case !strings.HasSuffix(r.GetTableName(), "/"+base):
			return "entry"
		case sets(append(yes, no...), stateQualifier, []byte{stateIntent}):
			return "intent"
		case len(yes) == 1:
			return "adoption"
		}
		return "settlement"
	}
	return fmt.Sprintf("%T", req)
}

// TestTransact_Calls: a transaction makes no call that its promises do not need.
func TestTransact_Calls(t *testing.T) {
	t.Parallel()
	const n = 10
	item := func(i, version int) attr.Item {
		return attr.Item{"p": attr.String(fmt.Sprint(i)), "s": attr.Int(0), "g": attr.String("x"), "h": attr.Int(1), "v": attr.Int(int64(version))}
	}
	moved := func(i int) attr.Item {
		it := item(i, 0)
		it["h"] = attr.Int(2)
		return it
	}
	puts := func(t *tabledef.Table) (all []*Change) {
		for i := range n {
			all = append(all, replaceBy(t, keyAttrs(t, item(i, 0)), item(i, 1)))
		}
		return all
	}
	for name, c := range map[string]struct {
		indexed bool
		token   string
		changes func(t *tabledef.Table) []*Change
		before  func(t *testing.T, s *Store, def *tabledef.Table)
		fails   bool
		want    string
	}{
		"puts": {
			changes: puts,
			want:    "1 read of 10, 1 record, 10 intent, 1 decision, 10 settlement, 1 removal",
		},
		"puts, index": {
			indexed: true, changes: puts,
			want: "1 read of 10, 1 record, 10 intent, 1 decision, 10 entry, 10 settlement, 1 removal",
		},
		"puts, token": {
			token: "a", changes: puts,
			want: "1 token read, 1 read of 10, 1 record, 2 token write, 10 intent, 1 decision, 10 settlement, 1 removal",
		},
		"puts, index, token": {
			indexed: true, token: "b", changes: puts,
			want: "1 token read, 1 read of 10, 1 record, 2 token write, 10 intent, 1 decision, 10 entry, 10 settlement, 1 removal",
		},
		"a check, 3 changes, 2 that move the entry, 2 deletes, 2 new items, index": {
			indexed: true,
			changes: func(t *tabledef.Table) []*Change {
				all := puts(t)
				all[0] = checkOnly(t, all[0].Key, func(attr.Item) error { return nil })
				for i := range 2 {
					all[4+i] = replaceBy(t, all[4+i].Key, moved(4+i))
					all[6+i] = replaceBy(t, all[6+i].Key, nil)
					all[8+i] = replaceBy(t, keyAttrs(t, item(n+i, 0)), item(n+i, 0))
				}
				return all
			},
			want: "1 read of 10, 1 record, 10 intent, 1 decision, 11 entry, 10 settlement, 1 removal",
		},
		"a condition fails": {
			changes: func(t *tabledef.Table) []*Change {
				return append(puts(t)[:n-1], checkOnly(t, keyAttrs(t, item(n-1, 0)), func(attr.Item) error { return errTooPoor }))
			},
			fails: true,
			want:  "1 read of 10",
		},
		"items that another client wrote": {
			changes: puts,
			before: func(t *testing.T, s *Store, def *tabledef.Table) {
				t.Helper()
				for row, err := range s.bt.Read(t.Context(), btclient.Read{Table: def.BigtableTable, Spans: []btclient.Span{{}}}) {
					if err == nil {
						err = s.bt.MutateRow(t.Context(), def.BigtableTable, row.Key, []*btpb.Mutation{btclient.DeleteFamily(lens.FamilyState)})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			},
			want: "2 read of 10, 1 record, 10 adoption, 10 intent, 1 decision, 10 settlement, 1 removal",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := intercept.New(backends["emu"](t), nil)
			s := openStore(t, testOptions(conn))
			spec := indexedTable("calls")
			if spec.Indexes = spec.Indexes[:1]; !c.indexed {
				spec.Indexes = nil
			}
			def := newTable(t, s, spec)
			for i := range n {
				if err := put(t.Context(), s, def, item(i, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if c.before != nil {
				c.before(t, s, def)
			}
			calls := &callLog{calls: map[string]int{}}
			conn.Before(func(_ context.Context, req any) error {
				calls.add(req, def.BigtableTable)
				return nil
			})
			ok, _, err := s.Transact(t.Context(), RequestToken{Token: c.token}, c.changes(def))
			conn.Before(nil)
			if ok == c.fails || err != nil {
				t.Errorf("transact: %v, %v", ok, err)
			}
			if got := calls.String(); got != c.want {
				t.Errorf("calls:\n got %s\nwant %s", got, c.want)
			}
			checkNoIntents(t, s, def.BigtableTable)
		})
	}
}

// TestTransact_CallsOfConflict: a transaction that meets an elder one withdraws without reading
// the items whose state it knows.
func TestTransact_CallsOfConflict(t *testing.T) {
	t.Parallel()
	bt := backends["emu"](t)
	connA, connB := intercept.New(bt, nil), intercept.New(bt, nil)
	a := openStore(t, testOptions(connA))
	def := newTable(t, a, tabledef.Table{Name: "calls", Key: testSchemas["S"]})
	b := openStore(t, testOptions(connB))
	var changes []*Change
	for i := range 10 {
		item := attr.Item{"p": attr.String(fmt.Sprint(i))}
		changes = append(changes, replaceBy(def, item, item))
	}
	if err := a.locate(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	inKeyOrder(changes)
	contended := changes[4].Key
	// The elder one begins, waits until the other one has read its items, and then has its
	// intent until the other one has ended.
	begun, read, placed, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	connA.Before(func(_ context.Context, req any) error {
		switch purpose(req, def.BigtableTable) {
		case "record":
			close(begun)
			<-read
		case "decision":
			close(placed)
			<-ended
		}
		return nil
	})
	var elder sync.WaitGroup
	elder.Go(func() {
		if ok, _, err := a.Transact(t.Context(), RequestToken{}, []*Change{replaceBy(def, contended, contended)}); !ok || err != nil {
			t.Errorf("the elder transaction: %v, %v", ok, err)
		}
	})
	<-begun
	calls := &callLog{calls: map[string]int{}}
	connB.Before(func(_ context.Context, req any) error {
		if calls.add(req, def.BigtableTable); purpose(req, def.BigtableTable) == "record" {
			close(read)
			<-placed
		}
		return nil
	})
	ok, _, err := b.Transact(t.Context(), RequestToken{}, changes)
	connB.Before(nil)
	close(ended)
	elder.Wait()
	connA.Before(nil)
	if ok || err != nil || !errors.Is(changes[4].Err, ErrIntent) {
		t.Errorf("transact: %v, %v, %v", ok, err, changes[4].Err)
	}
	// After the refusal of the fifth intent, one read shows that no earlier delivery placed it, and
	// the next attempt reads the item.
	if got, want := calls.String(), "1 read of 10, 1 record, 5 intent, 2 read of 1, 1 record read, 1 decision, 4 settlement, 1 removal"; got != want {
		t.Errorf("calls:\n got %s\nwant %s", got, want)
	}
	checkNoIntents(t, a, def.BigtableTable)
}

// TestSnapshot_Calls: a snapshot that holds absent items does not read them again.
func TestSnapshot_Calls(t *testing.T) {
	t.Parallel()
	conn := intercept.New(backends["emu"](t), nil)
	s := openStore(t, testOptions(conn))
	def := newTable(t, s, tabledef.Table{Name: "calls", Key: testSchemas["S"]})
	var reads []*ItemRead
	for i := range 10 {
		item := attr.Item{"p": attr.String(fmt.Sprint(i))}
		if reads = append(reads, &ItemRead{Table: def, Key: item}); i >= 5 {
			if err := put(t.Context(), s, def, item); err != nil {
				t.Fatal(err)
			}
		}
	}
	calls := &callLog{calls: map[string]int{}}
	conn.Before(func(_ context.Context, req any) error {
		calls.add(req, def.BigtableTable)
		return nil
	})
	ok, err := s.Snapshot(t.Context(), reads)
	conn.Before(nil)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got, want := calls.String(), "1 read of 10, 1 record, 5 intent, 1 read of 5, 1 decision, 5 settlement, 1 removal"; got != want {
		t.Errorf("calls:\n got %s\nwant %s", got, want)
	}
	checkNoIntents(t, s, def.BigtableTable)
}
