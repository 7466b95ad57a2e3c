package source

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// TableSchema holds the parts of a table description that a mapping needs.
type TableSchema struct {
	Name    string         // name of the table; "" if the description has none
	Key     attr.KeySchema // key of the table
	Indexes []Index        // indexes, first global, then local
	// TTL is the expiry attribute, or "" if the description has none.
	TTL string
}

type schemaProjection struct {
	ProjectionType   string
	NonKeyAttributes []string
}

type schemaKey []struct{ AttributeName, KeyType string }

type schemaIndex struct {
	IndexName  string
	KeySchema  schemaKey
	Projection schemaProjection
}

type schemaTable struct {
	TableName              string
	AttributeDefinitions   []struct{ AttributeName, AttributeType string }
	KeySchema              schemaKey
	GlobalSecondaryIndexes []schemaIndex
	LocalSecondaryIndexes  []schemaIndex
}

// schemaTTL is the time to live in an answer of DescribeTimeToLive or a request of
// UpdateTimeToLive.
type schemaTTL struct {
	AttributeName    string
	TimeToLiveStatus string
	Enabled          *bool
}

// on returns the expiry attribute, or "".
func (t schemaTTL) on() string {
	if t.TimeToLiveStatus == "DISABLED" || t.TimeToLiveStatus == "DISABLING" || t.Enabled != nil && !*t.Enabled {
		return ""
	}
	return t.AttributeName
}

// ParseTableSchema parses the JSON of a DescribeTable or CreateTable response, or of a
// CreateTable request. A DescribeTimeToLive response or UpdateTimeToLive request may
// follow, or be among its members. Every error is an [Error] that names file.
func ParseTableSchema(file string, src []byte) (*TableSchema, error) {
	at := Position{File: file}
	var doc struct {
		schemaTable
		Table, TableDescription                        *schemaTable
		TimeToLiveDescription, TimeToLiveSpecification schemaTTL
	}
	d := jsontext.NewDecoder(bytes.NewReader(src))
	for read := false; ; read = true {
		err := json.UnmarshalDecode(d, &doc)
		if read && errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, Damaged(SchemaInvalid, at, err, "the table schema is not the JSON of a DescribeTable response or a CreateTable request")
		}
	}
	t := &doc.schemaTable
	switch {
	case doc.Table != nil:
		t = doc.Table
	case doc.TableDescription != nil:
		t = doc.TableDescription
	}
	if len(t.KeySchema) == 0 {
		return nil, Damaged(SchemaInvalid, at, nil, "the table schema has no KeySchema")
	}
	key, more, err := t.key(at, t.KeySchema)
	if err != nil {
		return nil, err
	}
	if len(more) > 0 {
		return nil, Damaged(SchemaInvalid, at, nil, "the key of the table has the attributes %q besides %q and %q, want one HASH and at most one RANGE", more, key.Hash.Name, key.Range.Name)
	}
	s := &TableSchema{Name: t.TableName, Key: key, TTL: cmp.Or(doc.TimeToLiveDescription.on(), doc.TimeToLiveSpecification.on())}
	for local, list := range [][]schemaIndex{t.GlobalSecondaryIndexes, t.LocalSecondaryIndexes} {
		for _, x := range list {
			key, more, err := t.key(at, x.KeySchema)
			if err != nil {
				return nil, err
			}
			s.Indexes = append(s.Indexes, Index{
				Name: x.IndexName, Key: key, MoreKey: more, Local: local == 1,
				Projection: x.Projection.ProjectionType, Include: x.Projection.NonKeyAttributes,
			})
		}
	}
	return s, nil
}

// key returns the first attribute of each kind, and the names of further ones.
func (t *schemaTable) key(at Position, k schemaKey) (s attr.KeySchema, more []string, err error) {
	for _, part := range k {
		tag := ""
		for _, d := range t.AttributeDefinitions {
			if d.AttributeName == part.AttributeName {
				tag = d.AttributeType
			}
		}
		a, err := keyAttr(at, part.AttributeName, tag)
		if err != nil {
			return s, nil, err
		}
		of := map[string]*attr.KeyAttr{"HASH": &s.Hash, "RANGE": &s.Range}[part.KeyType]
		switch {
		case of == nil:
			return s, nil, Damaged(SchemaInvalid, at, nil, "key attribute %q has KeyType %q, want HASH or RANGE", a.Name, part.KeyType)
		case of.Name != "":
			more = append(more, a.Name)
		default:
			*of = a
		}
	}
	if s.Hash.Name == "" {
		return s, nil, Damaged(SchemaInvalid, at, nil, "a key has no HASH attribute")
	}
	return s, more, nil
}
