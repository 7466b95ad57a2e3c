package seed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// definition describes a table that may have to be created.
type definition struct {
	at     source.Position
	schema source.TableSchema
	create request
	stream jsontext.Value // the StreamSpecification, which follows the items; nil for none
}

// onDemand is a billing mode.
const onDemand = "PAY_PER_REQUEST"

// request is a CreateTable request. It has the members that remain of a DescribeTable response.
type request struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	LocalSecondaryIndexes     []index        `json:",omitempty"`
	GlobalSecondaryIndexes    []index        `json:",omitempty"`
	VectorIndexes             []vectorIndex  `json:",omitempty"`
	BillingMode               string         `json:",omitzero"`
	ProvisionedThroughput     *throughput    `json:",omitzero"`
	OnDemandThroughput        jsontext.Value `json:",omitzero"`
	SSESpecification          jsontext.Value `json:",omitzero"`
	TableClass                string         `json:",omitzero"`
	DeletionProtectionEnabled bool           `json:",omitzero"`
	ResourcePolicy            jsontext.Value `json:",omitzero"`
	Tags                      []tag          `json:",omitempty"`
}

type attributeDefinition struct{ AttributeName, AttributeType string }

type keyElement struct{ AttributeName, KeyType string }

type tag struct{ Key, Value string }

type projection struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }

type index struct {
	IndexName             string
	KeySchema             []keyElement
	Projection            projection
	ProvisionedThroughput *throughput    `json:",omitzero"`
	OnDemandThroughput    jsontext.Value `json:",omitzero"`
}

type vectorIndex struct {
	IndexName        string
	VectorAttribute  jsontext.Value `json:",omitzero"`
	SearchSchema     jsontext.Value `json:",omitzero"`
	Projection       jsontext.Value `json:",omitzero"`
	Dimensions       jsontext.Value `json:",omitzero"`
	DistanceFunction string         `json:",omitzero"`
}

// description has the members of DescribeTable that CreateTable calls differently.
type description struct {
	request
	BillingModeSummary  struct{ BillingMode string }
	TableClassSummary   struct{ TableClass string }
	SSEDescription      struct{ Status, SSEType, KMSMasterKeyArn string }
	StreamSpecification jsontext.Value
}

// parseDefinition parses the JSON of DescribeTable or CreateTable, which may be followed by that
// of DescribeTimeToLive.
func parseDefinition(at source.Position, text []byte) (*definition, error) {
	schema, err := source.ParseTableSchema(at.String(), text)
	if err != nil {
		return nil, err
	}
	if schema.Name == "" {
		return nil, source.Damaged(source.SchemaInvalid, at, nil, "the description has no TableName")
	}
	var doc struct {
		description
		Table, TableDescription *description
	}
	first := jsontext.NewDecoder(strings.NewReader(string(text)))
	if err := json.UnmarshalDecode(first, &doc); err != nil {
		return nil, source.Damaged(source.SchemaInvalid, at, source.JSONCause(err), "the description of table %s is not the JSON of DescribeTable or CreateTable", schema.Name)
	}
	d := cmp.Or(doc.Table, doc.TableDescription, &doc.description)
	r := d.request
	r.BillingMode = cmp.Or(r.BillingMode, d.BillingModeSummary.BillingMode)
	if r.BillingMode == "" && (r.ProvisionedThroughput == nil || *r.ProvisionedThroughput == throughput{}) {
		r.BillingMode = onDemand // a description without the members of billing
	}
	if r.BillingMode == onDemand {
		r.ProvisionedThroughput = nil
		for i := range r.GlobalSecondaryIndexes {
			r.GlobalSecondaryIndexes[i].ProvisionedThroughput = nil
		}
	}
	r.TableClass = cmp.Or(r.TableClass, d.TableClassSummary.TableClass)
	if d.SSEDescription.SSEType == "KMS" && r.SSESpecification == nil {
		r.SSESpecification = jsontext.Value(`{"Enabled":true,"SSEType":"KMS"}`)
	}
	def := &definition{at: at, schema: *schema, create: r}
	var stream struct{ StreamEnabled bool }
	if d.StreamSpecification != nil && json.Unmarshal(d.StreamSpecification, &stream) == nil && stream.StreamEnabled {
		def.stream = d.StreamSpecification
	}
	return def, nil
}

// key appends the elements of a key, and defines their attributes.
func (r *request) key(into *[]keyElement, k attr.KeySchema) {
	for i, a := range k.Attrs() {
		if a.Name == "" {
			continue
		}
		*into = append(*into, keyElement{a.Name, [2]string{"HASH", "RANGE"}[i]})
		if def := (attributeDefinition{a.Name, a.Type.String()}); !slices.Contains(r.AttributeDefinitions, def) {
			r.AttributeDefinitions = append(r.AttributeDefinitions, def)
		}
	}
}

// otherIndexes describes how the indexes of an existing table differ from the definition. It
// returns "" if they are equal.
func (d *definition) otherIndexes(exists *source.TableSchema) string {
	text := func(x source.Index) string {
		slices.Sort(x.Include)
		return fmt.Sprintf("%s on %s with %s %v", x.Name, source.KeyText(x.Key), cmp.Or(x.Projection, "ALL"), x.Include)
	}
	var texts [2][]string
	for i, list := range [][]source.Index{d.schema.Indexes, exists.Indexes} {
		for _, x := range list {
			texts[i] = append(texts[i], text(x))
		}
	}
	var out []string
	for i, does := range []string{"has no index ", "has another index "} {
		for _, x := range texts[i] {
			if !slices.Contains(texts[1-i], x) {
				name, _, _ := strings.Cut(x, " ")
				out = append(out, does+name)
			}
		}
	}
	return strings.Join(out, " and ")
}
