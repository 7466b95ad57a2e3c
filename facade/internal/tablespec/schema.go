package tablespec

import (
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Limits of a table. Source: quotas page of the developer guide.
const (
	MaxKeyAttributesOfKind    = 4 // limit for HASH attributes, and for RANGE attributes, of a global index
	maxCapacityUnits          = 1_000_000_000_000
	maxLocalSecondaryIndexes  = 5
	maxGlobalSecondaryIndexes = 20
	maxNonKeyAttributesSummed = 100 // over the indexes of a table
)

// AttributeDefinition is the name and type of a key attribute.
type AttributeDefinition struct {
	AttributeName *string
	AttributeType *string
}

// Name returns the name in a definition that was checked.
func (d AttributeDefinition) Name() string { return *d.AttributeName }

// KeySchemaElement is the name of a key attribute and its role in the key.
type KeySchemaElement struct {
	AttributeName *string
	KeyType       *string
}

// Name returns the name in an element that was checked.
func (e KeySchemaElement) Name() string { return *e.AttributeName }

// Kind returns HASH or RANGE from an element that was checked.
func (e KeySchemaElement) Kind() string { return *e.KeyType }

// DefinitionOf returns the definition of a key attribute.
func DefinitionOf(a attr.KeyAttr) AttributeDefinition {
	return AttributeDefinition{new(a.Name), new(a.Type.String())}
}

// Projection is the projection of an index in a request.
type Projection struct {
	ProjectionType   *string  `json:",omitzero"`
	NonKeyAttributes []string `json:",omitzero"`
}

// ProvisionedThroughput is the provisioned throughput in a request, in units per second.
type ProvisionedThroughput struct {
	ReadCapacityUnits  *int64
	WriteCapacityUnits *int64
}

// LocalSecondaryIndex is a local index in a request.
type LocalSecondaryIndex struct {
	IndexName  *string
	KeySchema  []KeySchemaElement
	Projection *Projection
}

// GlobalSecondaryIndex is a global index in a request.
type GlobalSecondaryIndex struct {
	IndexName             *string
	KeySchema             []KeySchemaElement
	Projection            *Projection
	ProvisionedThroughput *ProvisionedThroughput
	OnDemandThroughput    *tabledef.OnDemandThroughput
	WarmThroughput        *tabledef.WarmThroughput
}

// Billing modes.
const (
	BillingProvisioned = "PROVISIONED"
	BillingOnDemand    = "PAY_PER_REQUEST"
)

// Schema holds the keys and indexes in a request to create a table.
type Schema struct {
	AttributeDefinitions   []AttributeDefinition
	KeySchema              []KeySchemaElement
	LocalSecondaryIndexes  []LocalSecondaryIndex
	GlobalSecondaryIndexes []GlobalSecondaryIndex
	VectorIndexes          []VectorIndex
}

// Resolve checks a schema and sets the keys and indexes of a table. The billing mode of
// the table must be set.
func (in Schema) Resolve(t *tabledef.Table) error {
	if err := CheckDefinedOnce(in.AttributeDefinitions); err != nil {
		return err
	}
	types := DefinedTypes(in.AttributeDefinitions)
	var err error
	if t.Key, err = resolveTableKey(in.KeySchema, in.AttributeDefinitions, types); err != nil {
		return err
	}
	t.Attributes = DefinitionsOf(in.AttributeDefinitions)
	if in.LocalSecondaryIndexes != nil && len(in.LocalSecondaryIndexes) == 0 {
		return awserr.Validation(awserr.MsgIndexListEmpty, "LocalSecondaryIndexes")
	}
	if in.GlobalSecondaryIndexes != nil && len(in.GlobalSecondaryIndexes) == 0 {
		return awserr.Validation(awserr.MsgIndexListEmpty, "GlobalSecondaryIndexes")
	}
	if len(in.LocalSecondaryIndexes) > 0 && t.Key.Range.Name == "" {
		return awserr.Validation(awserr.MsgLocalWithoutRange)
	}
	for _, given := range in.LocalSecondaryIndexes {
		if err := CheckDefined(given.KeySchema, in.AttributeDefinitions, types); err != nil {
			return err
		}
	}
	for _, given := range in.LocalSecondaryIndexes {
		ix, err := resolveLocal(t, given, types)
		if err != nil {
			return err
		}
		t.Indexes = append(t.Indexes, ix)
	}
	for _, given := range in.GlobalSecondaryIndexes {
		if err := CheckDefined(given.KeySchema, in.AttributeDefinitions, types); err != nil {
			return err
		}
	}
	for _, given := range in.GlobalSecondaryIndexes {
		ix, err := ResolveGlobal(given, t.BillingMode, awserr.MsgIndexThroughputNone, types)
		if err != nil {
			return err
		}
		t.Indexes = append(t.Indexes, ix)
	}
	if err := in.resolveVectors(t); err != nil {
		return err
	}
	if err := CheckIndexLimits(t); err != nil {
		return err
	}
	if err := CheckDimensions(t); err != nil {
		return err
	}
	used := UsedKeys(t)
	if len(used) == len(in.AttributeDefinitions) {
		return nil
	}
	if len(t.Indexes) == 0 && len(t.Vectors) == 0 {
		return awserr.Validation(awserr.MsgSurplusDefinitions)
	}
	return awserr.Validation(awserr.MsgUnusedDefinitions, definitionNames(in.AttributeDefinitions), strings.Join(HashOrder(used, DefaultHashRoom), ", "))
}

// DefinitionsOf returns the key attributes of definitions that were checked.
func DefinitionsOf(defs []AttributeDefinition) []attr.KeyAttr {
	types := DefinedTypes(defs)
	out := make([]attr.KeyAttr, len(defs))
	for i, d := range defs {
		out[i] = attr.KeyAttr{Name: d.Name(), Type: types[d.Name()]}
	}
	return out
}

// DefinedTypes returns the types of the defined attributes, by name.
func DefinedTypes(defs []AttributeDefinition) map[string]attr.Type {
	types := make(map[string]attr.Type, len(defs))
	for _, d := range defs {
		t, _ := attr.ParseType(*d.AttributeType) // the enum was checked
		types[d.Name()] = t
	}
	return types
}

// CheckDefinedOnce rejects definitions that define an attribute twice.
func CheckDefinedOnce(defs []AttributeDefinition) error {
	seen := make(map[string]bool, len(defs))
	for _, d := range defs {
		if seen[d.Name()] {
			return awserr.Validation(awserr.MsgDefinedTwice, d.Name())
		}
		seen[d.Name()] = true
	}
	return nil
}

// resolveKeySchema checks the shape of a key schema with defined attributes, and returns it
// with their types.
func resolveKeySchema(schema []KeySchemaElement, types map[string]attr.Type) (attr.KeySchema, error) {
	var key attr.KeySchema
	if len(schema) > 1 && schema[0].Name() == schema[1].Name() {
		return key, awserr.Validation(awserr.MsgHashEqualsRange)
	}
	if schema[0].Kind() != "HASH" {
		return key, awserr.Validation(awserr.MsgFirstKeyNotHash)
	}
	key.Hash = attr.KeyAttr{Name: schema[0].Name(), Type: types[schema[0].Name()]}
	if len(schema) > 1 {
		if schema[1].Kind() != "RANGE" {
			return key, awserr.Validation(awserr.MsgSecondKeyNotRange)
		}
		key.Range = attr.KeyAttr{Name: schema[1].Name(), Type: types[schema[1].Name()]}
	}
	return key, nil
}

// resolveTableKey acts like resolveKeySchema for a table, including the definitions.
func resolveTableKey(schema []KeySchemaElement, defs []AttributeDefinition, types map[string]attr.Type) (attr.KeySchema, error) {
	if len(defs) < len(schema) { // AWS counts before it checks the names
		return attr.KeySchema{}, awserr.Validation(awserr.MsgKeyNotDefined)
	}
	if err := CheckDefined(schema, defs, types); err != nil {
		return attr.KeySchema{}, err
	}
	return resolveKeySchema(schema, types)
}

// resolveGlobalKey acts like resolveKeySchema for a global index, whose parts may have several
// attributes.
func resolveGlobalKey(schema []KeySchemaElement, types map[string]attr.Type) (tabledef.IndexKey, error) {
	var key tabledef.IndexKey
	if schema[0].Kind() != "HASH" {
		return key, awserr.Validation(awserr.MsgFirstKeyNotHash)
	}
	ordered := true
	seen := make(map[string]bool, len(schema))
	for _, e := range schema {
		if seen[e.Name()] {
			if len(schema) == 2 && e.Kind() == "RANGE" {
				return key, awserr.Validation(awserr.MsgHashEqualsRange)
			}
			return key, awserr.Validation(awserr.MsgKeyNameTwice)
		}
		seen[e.Name()] = true
		a := attr.KeyAttr{Name: e.Name(), Type: types[e.Name()]}
		if e.Kind() == "RANGE" {
			key.Range = append(key.Range, a)
			continue
		}
		ordered = ordered && len(key.Range) == 0
		key.Hash = append(key.Hash, a)
	}
	switch {
	case !ordered:
		return key, awserr.Validation(awserr.MsgHashAfterRange)
	case len(key.Hash) > MaxKeyAttributesOfKind:
		return key, awserr.Validation(awserr.MsgTooManyKeyAttributes, "HASH")
	case len(key.Range) > MaxKeyAttributesOfKind:
		return key, awserr.Validation(awserr.MsgTooManyKeyAttributes, "RANGE")
	}
	return key, nil
}

// CheckDefined rejects a key schema with undefined attributes. types holds the types of defs. Its
// error lists the definitions and the key attributes, unless there are fewer definitions than key
// attributes.
func CheckDefined(schema []KeySchemaElement, defs []AttributeDefinition, types map[string]attr.Type) error {
	keys := make([]string, len(schema))
	undefined := false
	for i, e := range schema {
		keys[i] = e.Name()
		undefined = undefined || types[e.Name()] == attr.Absent
	}
	if !undefined {
		return nil
	}
	if keys = HashOrder(keys, 1); len(defs) < len(keys) {
		return awserr.Validation(awserr.MsgKeyNotDefined)
	}
	return awserr.Validation(awserr.MsgIndexKeyNotDefined, strings.Join(keys, ", "), definitionNames(defs))
}

func definitionNames(defs []AttributeDefinition) string {
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.Name()
	}
	return strings.Join(HashOrder(names, len(names)), ", ")
}

// resolveProjection sets an index's Projection.
func resolveProjection(ix *tabledef.Index, p *Projection) error {
	if p.ProjectionType == nil {
		return awserr.Validation(awserr.MsgProjectionUnknown)
	}
	ix.Projection = *p.ProjectionType
	if ix.Projection != tabledef.ProjectInclude {
		if p.NonKeyAttributes != nil {
			return awserr.Validation(awserr.MsgNonKeyNotAllowed, ix.Projection)
		}
		return nil
	}
	if len(p.NonKeyAttributes) == 0 {
		return awserr.Validation(awserr.MsgNonKeyMissing)
	}
	for i, name := range p.NonKeyAttributes {
		if slices.Contains(p.NonKeyAttributes[:i], name) {
			return awserr.Validation(awserr.MsgNonKeyTwice, name)
		}
	}
	ix.NonKey = slices.Clone(p.NonKeyAttributes)
	return nil
}

// resolveLocal checks a local index against its table.
func resolveLocal(t *tabledef.Table, in LocalSecondaryIndex, types map[string]attr.Type) (tabledef.Index, error) {
	ix := tabledef.Index{Name: *in.IndexName}
	key, err := resolveKeySchema(in.KeySchema, types)
	if err != nil {
		return ix, err
	}
	ix.Key = tabledef.IndexKeyOf(key)
	if len(ix.Key.Range) == 0 {
		return ix, awserr.Validation(awserr.MsgLocalIndexWithoutRange, ix.Name)
	}
	if hash := ix.Key.Hash[0].Name; hash != t.Key.Hash.Name {
		return ix, awserr.Validation(awserr.MsgLocalIndexOtherHash, ix.Name, hash, t.Key.Hash.Name)
	}
	return ix, resolveProjection(&ix, in.Projection)
}

// ResolveGlobal checks a global index of a table with the given billing mode.
// withoutUnits is the operation's error text for an index without throughput.
func ResolveGlobal(in GlobalSecondaryIndex, billing, withoutUnits string, types map[string]attr.Type) (tabledef.Index, error) {
	ix := tabledef.Index{Name: *in.IndexName, Global: true}
	var err error
	if ix.Key, err = resolveGlobalKey(in.KeySchema, types); err != nil {
		return ix, err
	}
	if err := resolveProjection(&ix, in.Projection); err != nil {
		return ix, err
	}
	given := in.ProvisionedThroughput
	switch {
	case billing == BillingOnDemand && given != nil:
		return ix, awserr.Validation(awserr.MsgIndexThroughputOnDemand, ix.Name)
	case billing != BillingOnDemand && given == nil:
		return ix, awserr.Validation(withoutUnits, ix.Name)
	case given != nil:
		if err := CheckUnits(given); err != nil {
			return ix, err
		}
		ix.ReadUnits, ix.WriteUnits = *given.ReadCapacityUnits, *given.WriteCapacityUnits
	}
	return ix, SetThroughput(&ix.Throughput, tabledef.Throughput{OnDemand: in.OnDemandThroughput, Warm: in.WarmThroughput},
		Target{Index: ix.Name, Billing: billing, Provisioned: ix.Provisioned})
}

// CheckUnits rejects units that exceed the maximum of any table.
func CheckUnits(t *ProvisionedThroughput) error {
	if *t.ReadCapacityUnits > maxCapacityUnits {
		return awserr.Validation(awserr.MsgUnitsOutOfBounds, *t.ReadCapacityUnits, "ReadCapacityUnits")
	}
	if *t.WriteCapacityUnits > maxCapacityUnits {
		return awserr.Validation(awserr.MsgUnitsOutOfBounds, *t.WriteCapacityUnits, "WriteCapacityUnits")
	}
	return nil
}

// TooManyGlobal reports whether a table has more global indexes than it may have.
func TooManyGlobal(t *tabledef.Table) bool {
	global := 0
	for i := range t.Indexes {
		if t.Indexes[i].Global {
			global++
		}
	}
	return global > maxGlobalSecondaryIndexes
}

// CheckIndexLimits checks the limits over all indexes of a table.
func CheckIndexLimits(t *tabledef.Table) error {
	local, nonKey := 0, 0
	seen := map[string]bool{}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if seen[ix.Name] {
			return awserr.Validation(awserr.MsgDuplicateIndex, ix.Name)
		}
		seen[ix.Name] = true
		nonKey += len(ix.NonKey)
		if !ix.Global {
			local++
		}
	}
	for _, ix := range t.LiveVectors() {
		if seen[ix.Name] {
			return awserr.Validation(awserr.MsgDuplicateIndex, ix.Name)
		}
		seen[ix.Name] = true
		nonKey += len(ix.NonKey)
	}
	switch {
	case local > maxLocalSecondaryIndexes:
		return awserr.Validation(awserr.MsgTooManyLocal)
	case TooManyGlobal(t):
		return awserr.Validation(awserr.MsgTooManyGlobal)
	case nonKey > maxNonKeyAttributesSummed:
		return awserr.Validation(awserr.MsgTooManyNonKey, maxNonKeyAttributesSummed)
	}
	return nil
}

// UsedKeys returns the key attributes of the table, its indexes and its search schemas,
// each once, in order.
func UsedKeys(t *tabledef.Table) []string {
	var used []string
	addName := func(name string) {
		if !slices.Contains(used, name) {
			used = append(used, name)
		}
	}
	add := func(key []attr.KeyAttr) {
		for _, a := range key {
			addName(a.Name)
		}
	}
	add(t.Key.Attrs())
	for i := range t.Indexes {
		add(t.Indexes[i].Key.Attributes())
	}
	for _, ix := range t.LiveVectors() {
		for _, name := range ix.Schema {
			addName(name)
		}
	}
	return used
}

// KeySchemaElements converts a key to the form that descriptions use.
func KeySchemaElements(key tabledef.IndexKey) []KeySchemaElement {
	var out []KeySchemaElement
	for _, a := range key.Hash {
		out = append(out, KeySchemaElement{new(a.Name), new("HASH")})
	}
	for _, a := range key.Range {
		out = append(out, KeySchemaElement{new(a.Name), new("RANGE")})
	}
	return out
}
