package control

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

const (
	// maxCondition is the shown size of a key condition, in bytes.
	maxCondition = 256
	// maxTouched limits the shown rows of a request.
	maxTouched = 100
)

// itemKey is the key of an item that a DynamoDB request names.
type itemKey struct {
	table string
	key   attr.Item
}

// itemKeys finds the keys in DynamoDB requests, by the mappings of their tables.
type itemKeys struct {
	ctx      context.Context
	server   *Server
	mappings map[string]*mapping.Mapping // nil for a table without one
}

func (s *Server) itemKeys(ctx context.Context) *itemKeys {
	return &itemKeys{ctx, s, map[string]*mapping.Mapping{}}
}

func (k *itemKeys) mapping(table string) *mapping.Mapping {
	m, ok := k.mappings[table]
	if !ok {
		m, _ = k.server.opts.Endpoint.Mapping(k.ctx, table) // a deleted table has no mapping
		k.mappings[table] = m
	}
	return m
}

// entryOfItem is a part of a request that names an item.
type entryOfItem struct {
	TableName string
	Key, Item json.RawMessage
}

// asked is the part of a DynamoDB request that names items.
type asked struct {
	entryOfItem
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]json.RawMessage
	RequestItems              map[string]json.RawMessage
	TransactItems             []map[string]entryOfItem
}

// of returns the keys that a request names, and its key condition in words. Both are empty for a
// scan, and for a request that was not kept as a whole.
func (k *itemKeys) of(rec *requests.Record) (keys []itemKey, condition string) {
	text, _, _ := rec.Bodies()
	var in asked
	if rec.Endpoint != requests.DynamoDB || json.Unmarshal(text, &in) != nil {
		return nil, ""
	}
	add := func(table string, e entryOfItem) {
		given := e.Key
		if given == nil {
			given = e.Item
		}
		table = table[strings.LastIndexByte(table, '/')+1:] // an ARN
		item, err := attr.UnmarshalItem(given)
		if err != nil {
			return
		}
		m := k.mapping(table)
		switch {
		case m != nil:
			if item = (*layout.Mapping)(m).Key().KeyOf(item); len(item) == 0 {
				return
			}
		case e.Key == nil:
			return
		}
		keys = append(keys, itemKey{table, item})
	}
	if in.Key != nil || in.Item != nil {
		add(in.TableName, in.entryOfItem)
	}
	for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
		list := in.RequestItems[table]
		var get struct{ Keys []json.RawMessage }
		var write []map[string]entryOfItem
		if json.Unmarshal(list, &get) == nil {
			for _, key := range get.Keys {
				add(table, entryOfItem{Key: key})
			}
		} else if json.Unmarshal(list, &write) == nil {
			for _, entry := range write {
				for _, e := range entry {
					add(table, e)
				}
			}
		}
	}
	for _, entry := range in.TransactItems {
		for _, e := range entry {
			add(e.TableName, e)
		}
	}
	return keys, in.condition()
}

var placeholder = regexp.MustCompile(`[#:][A-Za-z0-9_.-]+`)

// condition returns the key condition with its names and values in place.
func (in *asked) condition() string {
	text := placeholder.ReplaceAllStringFunc(in.KeyConditionExpression, func(p string) string {
		if name, ok := in.ExpressionAttributeNames[p]; ok {
			return name
		}
		var v map[string]json.RawMessage
		if json.Unmarshal(in.ExpressionAttributeValues[p], &v) == nil {
			for kind, text := range v {
				if kind == "N" {
					return strings.Trim(string(text), `"`)
				}
				return string(text)
			}
		}
		return p
	})
	if len(text) > maxCondition {
		text = strings.ToValidUTF8(text[:maxCondition], "") + "…"
	}
	return text
}

// row returns the place of an item: the id of its Bigtable table, and the key of its row.
func (k *itemKeys) row(item itemKey) (table string, key []byte, ok bool) {
	m := k.mapping(item.table)
	if m == nil {
		return "", nil, false
	}
	key, err := m.Locate(item.key)
	return m.TargetTable(), key, err == nil
}

// describe adds the keys of a DynamoDB request to its record.
func (k *itemKeys) describe(out *record, rec *requests.Record) {
	keys, condition := k.of(rec)
	out.Condition = condition
	if len(keys) == 0 {
		return
	}
	out.Item, out.Items = attr.AppendItemJSON(nil, keys[0].key), len(keys)
}

// touched is a row that a request named, or a range of rows.
type touched struct {
	Table string `json:"table"`         // its resource name
	Key   *Bytes `json:"key,omitempty"` // of a row
	Start *Bytes `json:"start,omitempty"`
	End   *Bytes `json:"end,omitempty"` // the range ends before it; without it, at the table's end
}

// touchedBy returns the rows that calls name, each once. It leaves out the tables of the DynamoDB
// endpoint itself. more is the number of further ones.
func touchedBy(calls []requests.Record) (rows []touched, more int) {
	seen := map[string]bool{}
	for i := range calls {
		table := calls[i].Table()
		if _, id := ids(table); strings.HasPrefix(id, lab.OwnTables) {
			continue
		}
		for _, s := range calls[i].Spans() {
			id := table + "\x00" + string(s.Start) + "\x00" + string(s.End)
			if seen[id] {
				continue
			}
			seen[id] = true
			if len(rows) == maxTouched {
				more++
				continue
			}
			start, end := bytesOf(s.Start), bytesOf(s.End)
			row := touched{Table: table, Start: &start}
			switch {
			case bytes.Equal(s.End, cells.Next(s.Start)):
				row.Key, row.Start = &start, nil
			case len(s.End) > 0:
				row.End = &end
			}
			rows = append(rows, row)
		}
	}
	return rows, more
}
