package tablespec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// The limits of vector indexes. Source: quotas page of the developer guide.
const (
	maxVectorIndexes = 5
	maxDimensions    = 4096
	maxSearchHashes  = 1
	maxSearchFilters = 18
)

// The kinds of elements of a search schema.
const (
	searchHash   = "HASH"
	searchFilter = "INLINE_FILTER"
)

// VectorIndex is the definition of a vector index in a request.
type VectorIndex struct {
	IndexName        *string
	VectorAttribute  *VectorAttribute
	SearchSchema     []SearchSchemaElement
	Projection       *Projection
	Dimensions       *Dimensions
	DistanceFunction *string
}

// VectorAttribute names the attribute that holds the vectors of an index.
type VectorAttribute struct {
	AttributeName *string
}

// SearchSchemaElement is an attribute that search conditions may use.
type SearchSchemaElement struct {
	AttributeName           *string
	SearchSchemaElementType *string
}

// Dimensions is the number of dimensions in a request. Like the service, it truncates
// fractions.
type Dimensions int64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (d *Dimensions) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != '0' || err != nil {
		return awserr.New(awserr.CodeSerialization, awserr.MsgUnexpectedToken)
	}
	*d = Dimensions(max(min(n, math.MaxInt32), math.MinInt32))
	return nil
}

// VectorIndex checks the definition of a vector index against the API model.
func (v Constraints) VectorIndex(member string, ix VectorIndex) {
	if v.Required(member+".IndexName", ix.IndexName != nil); ix.IndexName != nil {
		v.Name(member+".IndexName", *ix.IndexName)
	}
	if v.Required(member+".VectorAttribute", ix.VectorAttribute != nil); ix.VectorAttribute != nil {
		v.keyName(member+".VectorAttribute.AttributeName", ix.VectorAttribute.AttributeName)
	}
	if ix.SearchSchema != nil && len(ix.SearchSchema) == 0 {
		v.Fail(member+".SearchSchema", "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	}
	for i, e := range ix.SearchSchema {
		path := fmt.Sprintf("%s.SearchSchema.%d.member.", member, i+1)
		v.keyName(path+"AttributeName", e.AttributeName)
		v.Required(path+"SearchSchemaElementType", e.SearchSchemaElementType != nil)
		v.Enum(path+"SearchSchemaElementType", e.SearchSchemaElementType, searchHash, searchFilter)
	}
	v.Projection(member+".Projection", ix.Projection)
	switch {
	case ix.Dimensions == nil:
		v.Required(member+".Dimensions", false)
	case *ix.Dimensions < 1:
		v.Fail(member+".Dimensions", request.Quoted(strconv.FormatInt(int64(*ix.Dimensions), 10)), fmt.Sprintf(awserr.MsgMemberMinValue, 1))
	}
	v.Required(member+".DistanceFunction", ix.DistanceFunction != nil)
	v.Enum(member+".DistanceFunction", ix.DistanceFunction, tabledef.DistanceCosine, tabledef.DistanceDotProduct, tabledef.DistanceEuclidean)
}

// ResolveVector checks and converts the definition of a vector index. billing is the
// billing mode of its table, and defs are the attribute definitions in the request.
func ResolveVector(in VectorIndex, billing string, defs []AttributeDefinition) (tabledef.VectorIndex, error) {
	if billing != BillingOnDemand {
		return tabledef.VectorIndex{}, awserr.Validation(awserr.MsgVectorsProvisioned)
	}
	ix, err := vectorOf(in)
	if err != nil {
		return ix, err
	}
	types := DefinedTypes(defs)
	if types[ix.Attribute] != attr.Absent {
		return ix, awserr.Validation(awserr.MsgVectorDefined, ix.Attribute)
	}
	for _, name := range ix.Schema {
		if types[name] == attr.Absent {
			return ix, awserr.Validation(awserr.MsgSearchSchemaUndefined)
		}
	}
	return ix, nil
}

// vectorOf converts the definition of a vector index.
func vectorOf(in VectorIndex) (tabledef.VectorIndex, error) {
	ix := tabledef.VectorIndex{Name: *in.IndexName, Attribute: *in.VectorAttribute.AttributeName, Distance: *in.DistanceFunction}
	if *in.Dimensions > maxDimensions {
		return ix, awserr.Validation(awserr.MsgDimensions)
	}
	ix.Dimensions = int(*in.Dimensions)
	if err := resolveSearchSchema(&ix, in.SearchSchema); err != nil {
		return ix, err
	}
	var projected tabledef.Index
	err := resolveProjection(&projected, in.Projection)
	ix.Projection, ix.NonKey = projected.Projection, projected.NonKey
	return ix, err
}

// resolveSearchSchema sets the search schema of an index.
func resolveSearchSchema(ix *tabledef.VectorIndex, schema []SearchSchemaElement) error {
	hashes, filters := 0, 0
	for _, e := range schema {
		if *e.SearchSchemaElementType == searchHash {
			hashes++
			ix.Hash = *e.AttributeName
		} else {
			filters++
		}
	}
	switch {
	case hashes > maxSearchHashes:
		return awserr.Validation(awserr.MsgSearchSchemaCount, hashes, searchHash, maxSearchHashes)
	case filters > maxSearchFilters:
		return awserr.Validation(awserr.MsgSearchSchemaCount, filters, searchFilter, maxSearchFilters)
	}
	for _, e := range schema {
		if slices.Contains(ix.Schema, *e.AttributeName) {
			return awserr.Validation(awserr.MsgSearchSchemaTwice)
		}
		ix.Schema = append(ix.Schema, *e.AttributeName)
	}
	return nil
}

// resolveVectors sets the vector indexes of a new table.
func (in Schema) resolveVectors(t *tabledef.Table) error {
	if in.VectorIndexes != nil && len(in.VectorIndexes) == 0 {
		return awserr.Validation(awserr.MsgIndexListEmpty, "VectorIndexes")
	}
	for _, given := range in.VectorIndexes {
		ix, err := ResolveVector(given, t.BillingMode, in.AttributeDefinitions)
		if err != nil {
			return err
		}
		t.Vectors = append(t.Vectors, ix)
	}
	if len(t.Vectors) > maxVectorIndexes {
		return awserr.Validation(awserr.MsgTooManyVectors)
	}
	return nil
}

// CheckVectors checks the limits that apply to all vector indexes of a table together,
// after an update added one. The error is a ValidationException or a
// LimitExceededException.
func CheckVectors(t *tabledef.Table) error {
	if len(t.LiveVectors()) > maxVectorIndexes {
		return awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyVectorsAdded)
	}
	return CheckDimensions(t)
}

// CheckDimensions rejects vector indexes on the same attribute with different dimensions.
func CheckDimensions(t *tabledef.Table) error {
	dimensions := map[string]int{}
	for _, ix := range t.LiveVectors() {
		if n, there := dimensions[ix.Attribute]; there && n != ix.Dimensions {
			return awserr.Validation(awserr.MsgDimensionsDiffer, ix.Attribute)
		}
		dimensions[ix.Attribute] = ix.Dimensions
	}
	return nil
}

// VectorDescription describes a vector index in responses.
type VectorDescription struct {
	Backfilling      *bool `json:",omitzero"`
	Dimensions       int
	DistanceFunction string
	IndexArn         string `json:",omitzero"`
	IndexName        string
	IndexSizeBytes   *int64 `json:",omitzero"`
	IndexStatus      string `json:",omitzero"`
	ItemCount        *int64 `json:",omitzero"`
	Projection       Projection
	SearchSchema     []SearchSchemaElement `json:",omitzero"`
	VectorAttribute  VectorAttribute
}

// DescribeVector returns the description of a vector index.
func DescribeVector(ix *tabledef.VectorIndex) VectorDescription {
	d := VectorDescription{
		Dimensions: ix.Dimensions, DistanceFunction: ix.Distance, IndexName: ix.Name,
		Projection: Projection{ProjectionType: &ix.Projection, NonKeyAttributes: ix.NonKey}, VectorAttribute: VectorAttribute{&ix.Attribute},
	}
	for _, name := range ix.Schema {
		kind := searchFilter
		if name == ix.Hash {
			kind = searchHash
		}
		d.SearchSchema = append(d.SearchSchema, SearchSchemaElement{&name, &kind})
	}
	return d
}

// IsVector reports whether a request defines the same vector index as a table has, except
// for its name.
func (in VectorIndex) IsVector(ix *tabledef.VectorIndex) bool {
	asked, err := vectorOf(in)
	asked.Name, asked.Transition, asked.FillFrom = ix.Name, ix.Transition, ix.FillFrom
	is := *ix
	asked.NonKey, is.NonKey = slices.Sorted(slices.Values(asked.NonKey)), slices.Sorted(slices.Values(is.NonKey))
	return err == nil && reflect.DeepEqual(asked, is)
}
