package facade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/hashorder"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wording"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// The parts of a table's schema as requests and descriptions carry them.

type attributeDefinition struct {
	AttributeName *string
	AttributeType *string
}

// name is the name of a definition that was checked.
func (d attributeDefinition) name() string { return *d.AttributeName }

type keySchemaElement struct {
	AttributeName *string
	KeyType       *string
}

// name and kind are the members of an element that was checked.
func (e keySchemaElement) name() string { return *e.AttributeName }
func (e keySchemaElement) kind() string { return *e.KeyType }

// definitionOf is the definition of a key attribute.
func definitionOf(a lens.KeyAttr) attributeDefinition {
	return attributeDefinition{new(a.Name), new(a.Type.String())}
}

type projection struct {
	ProjectionType   *string  `json:",omitzero"`
	NonKeyAttributes []string `json:",omitzero"`
}

type provisionedThroughput struct {
	ReadCapacityUnits  *int64
	WriteCapacityUnits *int64
}

type localSecondaryIndex struct {
	IndexName  *string
	KeySchema  []keySchemaElement
	Projection *projection
}

type globalSecondaryIndex struct {
	IndexName             *string
	KeySchema             []keySchemaElement
	Projection            *projection
	ProvisionedThroughput *provisionedThroughput
	OnDemandThroughput    *tabledef.OnDemandThroughput
	WarmThroughput        *tabledef.WarmThroughput
}

// The billing modes.
const (
	billingProvisioned = "PROVISIONED"
	billingOnDemand    = "PAY_PER_REQUEST"
)

// attributeDefinitions checks definitions against the model.
func (v *validator) attributeDefinitions(defs []attributeDefinition) {
	for i, d := range defs {
		path := fmt.Sprintf("AttributeDefinitions.%d.member.", i+1)
		v.keyName(path+"AttributeName", d.AttributeName)
		v.required(path+"AttributeType", d.AttributeType != nil)
		v.enum(path+"AttributeType", d.AttributeType, "B", "N", "S")
	}
}

func (v *validator) keyName(member string, name *string) {
	switch {
	case name == nil:
		v.required(member, false)
	case *name == "":
		v.fail(member, "''", fmt.Sprintf(msgMemberMinLength, 1))
	case len(*name) > maxKeyNameChars:
		v.fail(member, quoted(*name), fmt.Sprintf(msgMemberMaxLength, maxKeyNameChars))
	}
}

// keySchema checks the key of a table or an index; most is how many attributes
// the model allows, 0 where it sets no limit.
func (v *validator) keySchema(member string, schema []keySchemaElement, most int) {
	if len(schema) == 0 {
		if schema == nil {
			v.required(member, false)
		} else {
			v.fail(member, "'[]'", fmt.Sprintf(msgMemberMinLength, 1))
		}
	}
	if most > 0 && len(schema) > most {
		elements := make([]string, len(schema))
		for i, e := range schema {
			elements[i] = fmt.Sprintf("KeySchemaElement(attributeName=%s, keyType=%s)", wording.OrNull(e.AttributeName), wording.OrNull(e.KeyType))
		}
		v.fail(member, "'["+strings.Join(elements, ", ")+"]'", fmt.Sprintf(msgMemberMaxLength, most))
	}
	for i, e := range schema {
		path := fmt.Sprintf("%s.%d.member.", member, i+1)
		v.keyName(path+"AttributeName", e.AttributeName)
		v.required(path+"KeyType", e.KeyType != nil)
		v.enum(path+"KeyType", e.KeyType, "HASH", "RANGE")
	}
}

func (v *validator) indexProjection(member string, p *projection) {
	if p == nil {
		v.required(member, false)
		return
	}
	v.enum(member+".ProjectionType", p.ProjectionType, "ALL", "INCLUDE", "KEYS_ONLY")
	if p.NonKeyAttributes != nil && len(p.NonKeyAttributes) == 0 {
		v.fail(member+".NonKeyAttributes", "'[]'", fmt.Sprintf(msgMemberMinLength, 1))
	}
	if n := len(p.NonKeyAttributes); n > maxNonKeyAttributes {
		v.fail(member+".NonKeyAttributes", "'["+strings.Join(p.NonKeyAttributes, ", ")+"]'", fmt.Sprintf(msgMemberMaxLength, maxNonKeyAttributes))
	}
	if slices.ContainsFunc(p.NonKeyAttributes, func(name string) bool { return name == "" || len(name) > maxKeyNameChars }) {
		v.fail(member+".NonKeyAttributes", "'["+strings.Join(p.NonKeyAttributes, ", ")+"]'",
			fmt.Sprintf(msgMemberElements, fmt.Sprintf(msgMemberMaxLength, maxKeyNameChars), fmt.Sprintf(msgMemberMinLength, 1)))
	}
}

func (v *validator) throughput(member string, t *provisionedThroughput) {
	if t == nil {
		return
	}
	for _, units := range []struct {
		name  string
		value *int64
	}{{"WriteCapacityUnits", t.WriteCapacityUnits}, {"ReadCapacityUnits", t.ReadCapacityUnits}} {
		switch {
		case units.value == nil:
			v.required(member+"."+units.name, false)
		case *units.value < 1:
			v.fail(member+"."+units.name, fmt.Sprintf("'%d'", *units.value), fmt.Sprintf(msgMemberMinValue, 1))
		}
	}
}

// definedTypes returns the types of the defined attributes by name.
func definedTypes(defs []attributeDefinition) map[string]attr.Type {
	types := make(map[string]attr.Type, len(defs))
	for _, d := range defs {
		t, _ := attr.ParseType(*d.AttributeType) // the enum was checked
		types[d.name()] = t
	}
	return types
}

// checkDefinedOnce refuses definitions of one attribute.
func checkDefinedOnce(defs []attributeDefinition) error {
	seen := make(map[string]bool, len(defs))
	for _, d := range defs {
		if seen[d.name()] {
			return validationError(fmt.Sprintf(msgDefinedTwice, d.name()))
		}
		seen[d.name()] = true
	}
	return nil
}

// resolveKeySchema checks the shape of a key schema whose attributes are
// defined, and gives them their types.
func resolveKeySchema(schema []keySchemaElement, types map[string]attr.Type) (lens.KeySchema, error) {
	var key lens.KeySchema
	if len(schema) > 1 && schema[0].name() == schema[1].name() {
		return key, validationError(msgHashEqualsRange)
	}
	if schema[0].kind() != "HASH" {
		return key, validationError(msgFirstKeyNotHash)
	}
	key.Hash = lens.KeyAttr{Name: schema[0].name(), Type: types[schema[0].name()]}
	if len(schema) > 1 {
		if schema[1].kind() != "RANGE" {
			return key, validationError(msgSecondKeyNotRange)
		}
		key.Range = lens.KeyAttr{Name: schema[1].name(), Type: types[schema[1].name()]}
	}
	return key, nil
}

// resolveTableKey is resolveKeySchema for a table, definitions included.
func resolveTableKey(schema []keySchemaElement, defs []attributeDefinition, types map[string]attr.Type) (lens.KeySchema, error) {
	if len(defs) < len(schema) { // AWS counts before it looks at the names
		return lens.KeySchema{}, validationError(msgKeyNotDefined)
	}
	if err := checkDefined(schema, defs, types); err != nil {
		return lens.KeySchema{}, err
	}
	return resolveKeySchema(schema, types)
}

// resolveGlobalKey is resolveKeySchema for a global index, whose parts may have
// several attributes.
func resolveGlobalKey(schema []keySchemaElement, types map[string]attr.Type) (tabledef.IndexKey, error) {
	var key tabledef.IndexKey
	if schema[0].kind() != "HASH" {
		return key, validationError(msgFirstKeyNotHash)
	}
	ordered := true
	seen := make(map[string]bool, len(schema))
	for _, e := range schema {
		if seen[e.name()] {
			if len(schema) == 2 && e.kind() == "RANGE" {
				return key, validationError(msgHashEqualsRange)
			}
			return key, validationError(msgKeyNameTwice)
		}
		seen[e.name()] = true
		a := lens.KeyAttr{Name: e.name(), Type: types[e.name()]}
		if e.kind() == "RANGE" {
			key.Range = append(key.Range, a)
			continue
		}
		ordered = ordered && len(key.Range) == 0
		key.Hash = append(key.Hash, a)
	}
	switch {
	case !ordered:
		return key, validationError(msgHashAfterRange)
	case len(key.Hash) > maxKeyAttributesOfKind:
		return key, validationError(fmt.Sprintf(msgTooManyKeyAttributes, "HASH"))
	case len(key.Range) > maxKeyAttributesOfKind:
		return key, validationError(fmt.Sprintf(msgTooManyKeyAttributes, "RANGE"))
	}
	return key, nil
}

// checkDefined refuses a key schema with attributes that have no definition;
// types are those of defs. It lists both where there are as many definitions as
// key attributes.
func checkDefined(schema []keySchemaElement, defs []attributeDefinition, types map[string]attr.Type) error {
	keys := make([]string, len(schema))
	undefined := false
	for i, e := range schema {
		keys[i] = e.name()
		undefined = undefined || types[e.name()] == attr.Absent
	}
	if !undefined {
		return nil
	}
	if keys = hashorder.Of(keys, 1); len(defs) < len(keys) {
		return validationError(msgKeyNotDefined)
	}
	return validationError(fmt.Sprintf(msgIndexKeyNotDefined, strings.Join(keys, ", "), definitionNames(defs)))
}

func definitionNames(defs []attributeDefinition) string {
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.name()
	}
	return strings.Join(hashorder.Of(names, len(names)), ", ")
}

// resolveProjection fills an index's projection in.
func resolveProjection(ix *tabledef.Index, p *projection) error {
	if p.ProjectionType == nil {
		return validationError(msgProjectionUnknown)
	}
	ix.Projection = *p.ProjectionType
	if ix.Projection != tabledef.ProjectInclude {
		if p.NonKeyAttributes != nil {
			return validationError(fmt.Sprintf(msgNonKeyNotAllowed, ix.Projection))
		}
		return nil
	}
	if len(p.NonKeyAttributes) == 0 {
		return validationError(msgNonKeyMissing)
	}
	for i, name := range p.NonKeyAttributes {
		if slices.Contains(p.NonKeyAttributes[:i], name) {
			return validationError(fmt.Sprintf(msgNonKeyTwice, name))
		}
	}
	ix.NonKey = slices.Clone(p.NonKeyAttributes)
	return nil
}

// resolveLocal checks a local index against its table.
func resolveLocal(t *tabledef.Table, in localSecondaryIndex, types map[string]attr.Type) (tabledef.Index, error) {
	ix := tabledef.Index{Name: *in.IndexName}
	key, err := resolveKeySchema(in.KeySchema, types)
	if err != nil {
		return ix, err
	}
	ix.Key = tabledef.IndexKeyOf(key)
	if len(ix.Key.Range) == 0 {
		return ix, validationError(fmt.Sprintf(msgLocalIndexWithoutRange, ix.Name))
	}
	if hash := ix.Key.Hash[0].Name; hash != t.Key.Hash.Name {
		return ix, validationError(fmt.Sprintf(msgLocalIndexOtherHash, ix.Name, hash, t.Key.Hash.Name))
	}
	return ix, resolveProjection(&ix, in.Projection)
}

// resolveGlobal checks a global index of a table with the given billing mode; what
// it says of one without throughput depends on the operation.
func resolveGlobal(in globalSecondaryIndex, billing, withoutUnits string, types map[string]attr.Type) (tabledef.Index, error) {
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
	case billing == billingOnDemand && given != nil:
		return ix, validationError(fmt.Sprintf(msgIndexThroughputOnDemand, ix.Name))
	case billing != billingOnDemand && given == nil:
		return ix, validationError(fmt.Sprintf(withoutUnits, ix.Name))
	case given != nil:
		if err := checkUnits(given); err != nil {
			return ix, err
		}
		ix.ReadUnits, ix.WriteUnits = *given.ReadCapacityUnits, *given.WriteCapacityUnits
	}
	return ix, setThroughput(&ix.Throughput, tabledef.Throughput{OnDemand: in.OnDemandThroughput, Warm: in.WarmThroughput}, billing)
}

func checkUnits(t *provisionedThroughput) error {
	if *t.ReadCapacityUnits > maxCapacityUnits {
		return validationError(fmt.Sprintf(msgUnitsOutOfBounds, *t.ReadCapacityUnits, "ReadCapacityUnits"))
	}
	if *t.WriteCapacityUnits > maxCapacityUnits {
		return validationError(fmt.Sprintf(msgUnitsOutOfBounds, *t.WriteCapacityUnits, "WriteCapacityUnits"))
	}
	return nil
}

// checkIndexLimits checks what holds over all indexes of a table.
func checkIndexLimits(t *tabledef.Table) error {
	local, global, nonKey := 0, 0, 0
	seen := map[string]bool{}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if seen[ix.Name] {
			return validationError(fmt.Sprintf(msgDuplicateIndex, ix.Name))
		}
		seen[ix.Name] = true
		nonKey += len(ix.NonKey)
		if ix.Global {
			global++
		} else {
			local++
		}
	}
	switch {
	case local > maxLocalSecondaryIndexes:
		return validationError(msgTooManyLocal)
	case global > maxGlobalSecondaryIndexes:
		return validationError(msgTooManyGlobal)
	case nonKey > maxNonKeyAttributesSummed:
		return validationError(fmt.Sprintf(msgTooManyNonKey, maxNonKeyAttributesSummed))
	}
	return nil
}

// usedKeys returns the key attributes of the table and its indexes, each
// once, in order.
func usedKeys(t *tabledef.Table) []string {
	var used []string
	add := func(key []lens.KeyAttr) {
		for _, a := range key {
			if !slices.Contains(used, a.Name) {
				used = append(used, a.Name)
			}
		}
	}
	add(t.Key.Attrs())
	for i := range t.Indexes {
		add(t.Indexes[i].Key.Attributes())
	}
	return used
}

// keySchemaElements is a key schema as descriptions show it.
func keySchemaElements(key tabledef.IndexKey) []keySchemaElement {
	var out []keySchemaElement
	for _, a := range key.Hash {
		out = append(out, keySchemaElement{new(a.Name), new("HASH")})
	}
	for _, a := range key.Range {
		out = append(out, keySchemaElement{new(a.Name), new("RANGE")})
	}
	return out
}
