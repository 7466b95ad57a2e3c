package source

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
)

// openWorkbench opens a NoSQL Workbench model: tables with their keys, indexes and sample data.
// If a table has facets, the data is there.
func openWorkbench(t tree, name string) (*Source, error) {
	src := &Source{Format: "workbench"}
	err := readWorkbench(t, name, func(d *document) error {
		table := &Table{KeyFrom: "declared by the model"}
		index := len(src.Tables)
		count := func() error {
			table.Declared++
			return d.skip()
		}
		err := d.object(func(member string) error {
			var err error
			switch member {
			case "TableName":
				table.Name, err = d.text()
			case "KeyAttributes":
				table.Key, err = d.workbenchKey()
			case "GlobalSecondaryIndexes":
				err = d.array(func() error {
					index, err := d.workbenchIndex()
					table.Indexes = append(table.Indexes, index)
					return err
				})
			case "TableData":
				err = d.array(count)
			case "TableFacets":
				err = d.facets(func() error { return d.array(count) })
			default:
				err = d.skip()
			}
			return err
		})
		if err != nil {
			return err
		}
		if table.Name == "" || table.Key.Hash.Name == "" {
			return Damaged(SchemaInvalid, d.at(1), nil, "table %d of the model has no TableName or no KeyAttributes", index+1)
		}
		table.entries = func(yield func(Entry, error) bool) {
			err := readWorkbenchData(t, name, index, yield)
			if err != nil && !errors.Is(err, errStopped) {
				yield(Entry{}, err)
			}
		}
		src.Tables = append(src.Tables, table)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(src.Tables) == 0 {
		return nil, Damaged(SchemaInvalid, Position{File: t.label(name)}, nil, "the model has no tables")
	}
	return src, nil
}

// readWorkbench calls table at each element of DataModel.
func readWorkbench(t tree, name string, table func(d *document) error) error {
	in, err := t.open(name)
	if err != nil {
		return err
	}
	defer in.close()
	d := newDocument(in)
	err = d.object(func(member string) error {
		if member != "DataModel" {
			return d.skip()
		}
		return d.array(func() error { return table(d) })
	})
	if err != nil {
		return err
	}
	return d.end()
}

// facets calls data at the items of each facet of a table.
func (d *document) facets(data func() error) error {
	if d.PeekKind() == 'n' {
		return d.skip()
	}
	return d.array(func() error {
		return d.object(func(member string) error {
			if member != "TableData" {
				return d.skip()
			}
			return data()
		})
	})
}

// readWorkbenchData yields the items of the table at index. The lists of a table and its facets
// may repeat an item, which is yielded once.
func readWorkbenchData(t tree, name string, index int, yield func(Entry, error) bool) error {
	i := -1
	return readWorkbench(t, name, func(d *document) error {
		if i++; i != index {
			return d.skip()
		}
		lists, seen := 0, map[extsort.Hash]int{} // the list of each item
		list := func() error {
			lists++
			return d.array(func() error {
				return d.yieldEntry(sampleItem, func(e Entry, err error) bool {
					if err == nil {
						h := extsort.HashItem(e.Item)
						if in, ok := seen[h]; ok && in != lists {
							return true
						}
						seen[h] = lists
					}
					return yield(e, err)
				})
			})
		}
		return d.object(func(member string) error {
			switch member {
			case "TableData":
				return list()
			case "TableFacets":
				return d.facets(list)
			}
			return d.skip()
		})
	})
}

// typeDocuments converts the plain JSON documents of an item, as users type them into a model,
// to DynamoDB JSON. A whole document is in one of the two forms. Text that is not an item stays
// unchanged.
func typeDocuments(item []byte) []byte {
	var attributes map[string]jsontext.Value
	if json.Unmarshal(item, &attributes) != nil {
		return item
	}
	for name, value := range attributes {
		var document struct {
			M, L jsontext.Value `json:",omitzero"`
		}
		if _, err := attr.UnmarshalValue(value); err == nil || json.Unmarshal(value, &document, json.RejectUnknownMembers(true)) != nil {
			continue
		}
		switch {
		case document.M.Kind() == '{' && document.L == nil:
			attributes[name] = appendTyped(nil, document.M)
		case document.L.Kind() == '[' && document.M == nil:
			attributes[name] = appendTyped(nil, document.L)
		}
	}
	typed, err := json.Marshal(attributes, json.Deterministic(true))
	if err != nil {
		return item
	}
	return typed
}

// appendTyped appends a plain JSON value in DynamoDB JSON.
func appendTyped(dst []byte, v jsontext.Value) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	end := ""
	switch byte(v.Kind()) {
	case '{':
		dst, end = append(dst, `{"M":{`...), "}}"
	case '[':
		dst, end = append(dst, `{"L":[`...), "]}"
	case '0':
		return append(append(append(dst, `{"N":"`...), v...), `"}`...)
	case '"':
		return append(append(append(dst, `{"S":`...), v...), '}')
	case 'n':
		return append(dst, `{"NULL":true}`...)
	default:
		return append(append(append(dst, `{"BOOL":`...), v...), '}')
	}
	if _, err := d.ReadToken(); err != nil {
		return dst // cannot happen: the text has been read as JSON
	}
	for first := true; d.PeekKind() != '}' && d.PeekKind() != ']'; first = false {
		if !first {
			dst = append(dst, ',')
		}
		element, err := d.ReadValue()
		if err == nil && v.Kind() == '{' {
			dst = append(append(dst, element...), ':')
			element, err = d.ReadValue()
		}
		if err != nil {
			return dst // as above
		}
		dst = appendTyped(dst, element)
	}
	return append(dst, end...)
}

// workbenchAttribute is the declaration of an attribute in a model.
type workbenchAttribute struct {
	AttributeName string
	AttributeType string
}

type workbenchKey struct {
	PartitionKey workbenchAttribute
	SortKey      *workbenchAttribute
}

func (k workbenchKey) schema(at Position) (attr.KeySchema, error) {
	var s attr.KeySchema
	var err error
	if s.Hash, err = keyAttr(at, k.PartitionKey.AttributeName, k.PartitionKey.AttributeType); err != nil {
		return s, err
	}
	if k.SortKey != nil && k.SortKey.AttributeName != "" {
		s.Range, err = keyAttr(at, k.SortKey.AttributeName, k.SortKey.AttributeType)
	}
	return s, err
}

// keyAttr checks one declared key attribute.
func keyAttr(at Position, name, tag string) (attr.KeyAttr, error) {
	typ, ok := attr.ParseType(tag)
	switch {
	case name == "":
		return attr.KeyAttr{}, Damaged(SchemaInvalid, at, nil, "a key attribute has no name")
	case !ok || typ > attr.B:
		return attr.KeyAttr{}, Damaged(SchemaInvalid, at, nil, "key attribute %q is declared with type %q: a key must be S, N or B", name, tag)
	}
	return attr.KeyAttr{Name: name, Type: typ}, nil
}

func (d *document) workbenchKey() (attr.KeySchema, error) {
	text, at, err := d.value()
	if err != nil {
		return attr.KeySchema{}, err
	}
	var k workbenchKey
	if err := json.Unmarshal(text, &k); err != nil {
		return attr.KeySchema{}, Damaged(SchemaInvalid, at, err, "KeyAttributes cannot be parsed")
	}
	return k.schema(at)
}

func (d *document) workbenchIndex() (Index, error) {
	text, at, err := d.value()
	if err != nil {
		return Index{}, err
	}
	var x struct {
		IndexName     string
		KeyAttributes workbenchKey
		Projection    schemaProjection
	}
	if err := json.Unmarshal(jsontext.Value(text), &x); err != nil {
		return Index{}, Damaged(SchemaInvalid, at, err, "an index cannot be parsed")
	}
	key, err := x.KeyAttributes.schema(at)
	return Index{Name: x.IndexName, Key: key, Projection: x.Projection.ProjectionType, Include: x.Projection.NonKeyAttributes}, err
}
