// Package access converts recorded requests to access patterns of a fixture: the DynamoDB request,
// the corresponding native read, and the items that both must return.
package access

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tabletop-emu/tabletop/cells"
)

// Request is a recorded request to the DynamoDB endpoint, with its response.
type Request struct {
	ID        string // id of the pattern
	Operation string
	Request   json.RawMessage
	Response  json.RawMessage
	Calls     []Call // the Bigtable calls that the request caused
}

// Call is one Bigtable call that a request caused.
type Call struct {
	Operation string
	Request   json.RawMessage // as protojson
	Rows      int             // number of returned rows
}

// operations are the operations that an access pattern supports; the value reports whether the
// items of their answers are ordered.
var operations = map[string]bool{"GetItem": true, "Query": true, "Scan": false, "BatchGetItem": false, "TransactGetItems": true}

// narrowing holds members of requests that omit items, or parts of them. A native read of the
// same rows returns more.
var narrowing = []string{"AttributesToGet", "ExclusiveStartKey", "FilterExpression", "Limit", "ProjectionExpression", "QueryFilter", "ScanFilter", "Segment", "Select"}

// Pattern returns the text of a file for the folder "access" of a fixture. Its errors say why the
// request cannot be converted.
func Pattern(r Request) (string, error) {
	ordered, ok := operations[r.Operation]
	if !ok {
		return "", fmt.Errorf("%s does not read items", r.Operation)
	}
	if len(r.Request) == 0 || len(r.Response) == 0 {
		return "", errors.New("its request or response was too long to be recorded")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Request, &members); err != nil {
		return "", err
	}
	items, more, err := answered(r.Response)
	if err != nil {
		return "", err
	}
	if _, limited := members["Limit"]; more && !limited {
		return "", errors.New("its response is one of several pages")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "id: %s\ntitle: %s\n", encoded(r.ID), encoded(title(r.Operation, members)))
	fmt.Fprintf(&out, "dynamodb:\n  op: %s\n  request: %s\n", r.Operation, encoded(r.Request))
	if read := native(r, members, len(items)); read != "" {
		fmt.Fprintf(&out, "bigtable:\n%s", read)
	}
	fmt.Fprintf(&out, "expect:\n  count: %d\n  items:%s\n", len(items), map[bool]string{true: " []"}[len(items) == 0])
	for _, item := range items {
		fmt.Fprintf(&out, "  - %s\n", encoded(item))
	}
	if !ordered {
		out.WriteString("  order: any\n")
	}
	switch {
	case members["IndexName"] != nil:
		out.WriteString("consistency: eventual\n")
	case string(members["ConsistentRead"]) == "true":
		out.WriteString("consistency: strong\n")
	}
	return out.String(), nil
}

// title describes the request.
func title(operation string, members map[string]json.RawMessage) string {
	text := func(name string) (s string) {
		if json.Unmarshal(members[name], &s) != nil { // absent, or rejected by the endpoint
			return ""
		}
		return s
	}
	out := operation
	if index := text("IndexName"); index != "" {
		out += " of " + index
	}
	if table := text("TableName"); table != "" {
		out += " of " + table
	}
	if keys := text("KeyConditionExpression"); keys != "" {
		out += " where " + keys
	}
	return out
}

// answered returns the items of an answer, and whether further pages follow.
func answered(response []byte) (items []json.RawMessage, more bool, err error) {
	var a struct {
		Item             json.RawMessage
		Items            []json.RawMessage
		Responses        json.RawMessage
		LastEvaluatedKey json.RawMessage
		UnprocessedKeys  map[string]json.RawMessage
	}
	if err := json.Unmarshal(response, &a); err != nil {
		return nil, false, err
	}
	items = a.Items
	if len(a.Item) > 0 {
		items = append(items, a.Item)
	}
	var tables map[string][]json.RawMessage // BatchGetItem
	var list []struct{ Item json.RawMessage }
	switch {
	case len(a.Responses) == 0:
	case json.Unmarshal(a.Responses, &tables) == nil:
		for _, of := range tables {
			items = append(items, of...)
		}
	default:
		if err := json.Unmarshal(a.Responses, &list); err != nil {
			return nil, false, err
		}
		for _, one := range list {
			if len(one.Item) > 0 {
				items = append(items, one.Item)
			}
		}
	}
	return items, len(a.LastEvaluatedKey) > 0 || len(a.UnprocessedKeys) > 0, nil
}

// native returns the part of the pattern with the read that gives the same items; "" if the
// calls are not such a read: they read several tables, or rows that the answer omits.
func native(r Request, members map[string]json.RawMessage, items int) string {
	for _, name := range narrowing {
		if members[name] != nil {
			return ""
		}
	}
	if r.Operation == "TransactGetItems" {
		return ""
	}
	var table string
	var keys, ranges []string
	reversed, rows := false, 0
	for _, c := range r.Calls {
		if c.Operation != "ReadRows" {
			continue
		}
		var read btpb.ReadRowsRequest
		if protojson.Unmarshal(c.Request, &read) != nil { // too large to be recorded
			return ""
		}
		_, id, _ := strings.Cut(read.GetTableName(), "/tables/")
		if view := read.GetMaterializedViewName(); view != "" {
			_, id, _ = strings.Cut(view, "/materializedViews/")
		}
		if table != "" && id != table {
			return ""
		}
		table, reversed, rows = id, reversed || read.GetReversed(), rows+c.Rows
		for _, key := range read.GetRows().GetRowKeys() {
			keys = append(keys, encoded("hex:"+hex.EncodeToString(key)))
		}
		for _, rr := range read.GetRows().GetRowRanges() {
			ranges = append(ranges, rangeOf(rr))
		}
	}
	if len(keys)+len(ranges) == 0 || slices.Contains(ranges, "") || rows != items {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "  read:\n    table: %s\n", encoded(table))
	if len(keys) > 0 {
		fmt.Fprintf(&out, "    keys: [%s]\n", strings.Join(keys, ", "))
	}
	if len(ranges) > 0 {
		fmt.Fprintf(&out, "    ranges: [%s]\n", strings.Join(ranges, ", "))
	}
	if reversed {
		out.WriteString("    reversed: true\n")
	}
	fmt.Fprintf(&out, "  max_ranges: %d\n", len(keys)+len(ranges))
	return out.String()
}

// rangeOf returns a range with an inclusive start and an exclusive end; "" if it has no
// bounds.
func rangeOf(r *btpb.RowRange) string {
	start, end := r.GetStartKeyClosed(), r.GetEndKeyOpen()
	if open := r.GetStartKeyOpen(); open != nil {
		start = cells.Next(open)
	}
	if closed := r.GetEndKeyClosed(); closed != nil {
		end = cells.Next(closed)
	}
	var bounds []string
	if len(start) > 0 {
		bounds = append(bounds, "start: "+encoded("hex:"+hex.EncodeToString(start)))
	}
	if len(end) > 0 {
		bounds = append(bounds, "end: "+encoded("hex:"+hex.EncodeToString(end)))
	}
	if len(bounds) == 0 {
		return ""
	}
	return "{" + strings.Join(bounds, ", ") + "}"
}

// encoded returns a text or JSON on one line; JSON is also YAML.
func encoded(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a string, or JSON that was parsed before
	}
	return strings.TrimSpace(out.String())
}
