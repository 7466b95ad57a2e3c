package facade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/internal/tableschema"
	"github.com/tabletop-emu/tabletop/facade/internal/wording"
)

// The parts of a table's schema as requests and descriptions carry them.

// attributeDefinitions checks definitions against the model.
func (v *validator) attributeDefinitions(defs []tableschema.AttributeDefinition) {
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
func (v *validator) keySchema(member string, schema []tableschema.KeySchemaElement, most int) {
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

func (v *validator) indexProjection(member string, p *tableschema.Projection) {
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

func (v *validator) throughput(member string, t *tableschema.ProvisionedThroughput) {
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
