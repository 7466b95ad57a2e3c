package seed

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Endpoint runs an operation of DynamoDB; see facade.Server.Call.
type Endpoint interface {
	Call(ctx context.Context, operation string, request []byte) ([]byte, error)
}

// unfinishedTag marks a table until all of its items are written.
const unfinishedTag = "tabletop:seed-unfinished"

// Limits of one BatchWriteItem request. The service takes 16 MB.
const (
	maxBatchItems = 25
	maxBatchBytes = 8 << 20
)

// Filled is the result for one table.
type Filled struct {
	Table   string
	Path    string // path that named the table first
	Items   int64  // number of items written
	Left    bool   // the table had items, and was left unchanged
	Differs string // how the indexes of the existing table differ from its description; "" if they do not
}

// existing is the state of a table before it is filled.
type existing struct {
	source.TableSchema // Name is "" if the table does not exist
	arn                string
	unfinished         bool
	stream             bool
}

// Fill creates the missing tables, and writes the items of tables that are empty or that an
// earlier run did not complete. It refuses an existing table with another key before it writes
// anything. The endpoint must neither throttle requests nor delay the states of tables.
func (s *Seed) Fill(ctx context.Context, e Endpoint) ([]Filled, error) {
	states := make([]existing, len(s.tables))
	for i, t := range s.tables {
		var err error
		if states[i], err = describe(ctx, e, t.name); err != nil {
			return nil, err
		}
		if err := t.fits(&states[i]); err != nil {
			return nil, err
		}
	}
	out := make([]Filled, len(s.tables))
	for i, t := range s.tables {
		filled, err := t.fill(ctx, e, &states[i])
		if err != nil {
			return nil, err
		}
		out[i] = filled
	}
	return out, nil
}

// fits returns an error if a table cannot be filled in its present state.
func (t *table) fits(was *existing) error {
	switch {
	case was.Name == "" && t.def == nil:
		return source.Damaged(source.KeyUnknown, source.Position{File: t.at}, nil,
			"the key of table %s is unknown: also pass its description (aws dynamodb describe-table --table-name %s), or put it into the folder of the items as %s", t.name, t.name, schemaName)
	case was.Name != "" && t.def != nil && was.Key != t.def.schema.Key:
		return source.Damaged(source.SchemaInvalid, t.def.at, nil,
			"table %s exists with the key %s, but its description has %s: delete the table, or correct the description", t.name, source.KeyText(was.Key), source.KeyText(t.def.schema.Key))
	}
	return nil
}

// fill creates a table, or fills an existing one.
func (t *table) fill(ctx context.Context, e Endpoint, was *existing) (Filled, error) {
	out := Filled{Table: t.name, Path: t.at}
	settings := was.Name == "" || was.unfinished // those of another table may have been changed since
	if was.Name == "" {
		create := t.def.create
		create.Tags = append(create.Tags[:len(create.Tags):len(create.Tags)], tag{unfinishedTag, ""})
		if err := call(ctx, e, "CreateTable", create, nil); err != nil {
			return out, t.failed(t.def.at, err)
		}
		created, err := describe(ctx, e, t.name)
		if err != nil {
			return out, err
		}
		*was = created
	} else {
		if t.def != nil {
			out.Differs = t.def.otherIndexes(&was.TableSchema)
		}
		if !was.unfinished {
			empty, err := isEmpty(ctx, e, t.name)
			if out.Left = err == nil && !empty; err != nil || out.Left || len(t.data) == 0 {
				return out, err
			}
			if err := call(ctx, e, "TagResource", map[string]any{"ResourceArn": was.arn, "Tags": []tag{{unfinishedTag, ""}}}, nil); err != nil {
				return out, err
			}
		}
	}
	for _, data := range t.data {
		n, err := put(ctx, e, data.As(t.name, was.Key))
		out.Items += n
		if err != nil {
			return out, t.failed(source.Position{File: t.at}, err)
		}
	}
	if settings {
		if err := t.settle(ctx, e, was); err != nil {
			return out, err
		}
	}
	return out, call(ctx, e, "UntagResource", map[string]any{"ResourceArn": was.arn, "TagKeys": []string{unfinishedTag}}, nil)
}

// settle applies the settings that follow the items. Items of a seed are not changes, so the
// stream begins after them.
func (t *table) settle(ctx context.Context, e Endpoint, was *existing) error {
	if t.def != nil && t.def.stream != nil && !was.stream {
		if err := call(ctx, e, "UpdateTable", map[string]any{"TableName": t.name, "StreamSpecification": t.def.stream}, nil); err != nil {
			return t.failed(t.def.at, err)
		}
	}
	if t.def != nil && t.def.schema.TTL != "" {
		var now struct {
			TimeToLiveDescription struct{ AttributeName string }
		}
		if err := call(ctx, e, "DescribeTimeToLive", map[string]string{"TableName": t.name}, &now); err != nil {
			return err
		}
		if now.TimeToLiveDescription.AttributeName == "" {
			err := call(ctx, e, "UpdateTimeToLive", map[string]any{
				"TableName": t.name, "TimeToLiveSpecification": map[string]any{"Enabled": true, "AttributeName": t.def.schema.TTL},
			}, nil)
			if err != nil {
				return t.failed(t.def.at, err)
			}
		}
	}
	return nil
}

// failed adds the table and its place to the error of the endpoint.
func (t *table) failed(at source.Position, err error) error {
	if _, ok := awserr.As(err); !ok {
		return err // it has its own place, or the run was interrupted
	}
	return source.Damaged(source.SchemaInvalid, at, err, "table %s cannot be created or filled", t.name)
}

// describe returns the state of a table.
func describe(ctx context.Context, e Endpoint, name string) (was existing, err error) {
	request, err := json.Marshal(map[string]string{"TableName": name})
	if err != nil {
		return was, err
	}
	answer, err := e.Call(ctx, "DescribeTable", request)
	if refused, ok := awserr.As(err); ok && refused.Code == awserr.CodeResourceNotFound {
		return was, nil
	}
	if err != nil {
		return was, fmt.Errorf("table %s: %w", name, err)
	}
	schema, err := source.ParseTableSchema("table "+name, answer)
	if err != nil {
		return was, err
	}
	var described struct {
		Table struct {
			TableArn            string
			StreamSpecification struct{ StreamEnabled bool }
		}
	}
	if err := json.Unmarshal(answer, &described); err != nil {
		return was, err
	}
	was = existing{TableSchema: *schema, arn: described.Table.TableArn, stream: described.Table.StreamSpecification.StreamEnabled}
	var tags struct{ Tags []tag }
	if err := call(ctx, e, "ListTagsOfResource", map[string]string{"ResourceArn": was.arn}, &tags); err != nil {
		return was, err
	}
	for _, t := range tags.Tags {
		was.unfinished = was.unfinished || t.Key == unfinishedTag
	}
	return was, nil
}

// isEmpty reports whether a table has no items.
func isEmpty(ctx context.Context, e Endpoint, name string) (bool, error) {
	for start := jsontext.Value(nil); ; {
		request := map[string]any{"TableName": name, "Limit": 1, "ConsistentRead": true}
		if start != nil {
			request["ExclusiveStartKey"] = start
		}
		var page struct {
			Count            int
			LastEvaluatedKey jsontext.Value
		}
		if err := call(ctx, e, "Scan", request, &page); err != nil {
			return false, err
		}
		if start = page.LastEvaluatedKey; page.Count > 0 || start == nil {
			return page.Count == 0, nil
		}
	}
}

// put writes the items of a table in batches, and returns their number.
func put(ctx context.Context, e Endpoint, t *source.Table) (items int64, err error) {
	b := batch{table: t.Name, keys: map[string]bool{}}
	for entry, err := range t.Entries() {
		if err != nil {
			return items, err
		}
		if err := entry.CheckSize(t.Key); err != nil {
			return items, err
		}
		key := attr.Item{}
		for _, k := range t.Key.Attrs() {
			if k.Name != "" {
				key[k.Name] = entry.Item[k.Name]
			}
		}
		text, id := attr.AppendItemJSON(nil, entry.Item), key.String()
		if b.keys[id] || len(b.entries) == maxBatchItems || b.bytes+len(text) > maxBatchBytes {
			if err := b.write(ctx, e); err != nil {
				return items, err
			}
		}
		b.keys[id], b.bytes = true, b.bytes+len(text)
		b.entries = append(b.entries, written{text, entry.Position})
		items++
	}
	return items, b.write(ctx, e)
}

// batch is a number of items with different keys.
type batch struct {
	table   string
	keys    map[string]bool
	entries []written
	bytes   int
}

type written struct {
	item jsontext.Value
	at   source.Position
}

// write writes the batch, and empties it. If the endpoint refuses it, the error has the position
// of the first refused item.
func (b *batch) write(ctx context.Context, e Endpoint) error {
	if len(b.entries) == 0 {
		return nil
	}
	type put struct {
		PutRequest struct{ Item jsontext.Value }
	}
	puts := make([]put, len(b.entries))
	for i, w := range b.entries {
		puts[i].PutRequest.Item = w.item
	}
	var answer struct{ UnprocessedItems map[string]jsontext.Value }
	err := call(ctx, e, "BatchWriteItem", map[string]any{"RequestItems": map[string]any{b.table: puts}}, &answer)
	if _, ok := awserr.As(err); ok && ctx.Err() == nil {
		for _, w := range b.entries {
			if one := call(ctx, e, "PutItem", map[string]any{"TableName": b.table, "Item": w.item}, nil); one != nil {
				return source.Damaged(source.NotAnItem, w.at, one, "table %s cannot store the item", b.table)
			}
		}
	} else if err != nil {
		return err
	}
	if len(answer.UnprocessedItems) > 0 {
		return fmt.Errorf("table %s: the endpoint did not process all items of a batch", b.table)
	}
	clear(b.keys)
	b.entries, b.bytes = b.entries[:0], 0
	return nil
}

// call runs an operation, and decodes its answer into out unless that is nil.
func call(ctx context.Context, e Endpoint, operation string, request, out any) error {
	text, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return err
	}
	answer, err := e.Call(ctx, operation, text)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}
