package tablespec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
)

// The limits of the API model.
const (
	maxKeyNameChars     = 255 // key, index key and projected attribute names
	maxNonKeyAttributes = 20  // of one index
)

// Constraints checks the table definitions in requests against the API model.
type Constraints struct{ *request.Validator }

// Definitions checks attribute definitions against the model. path is their location in
// the request.
func (v Constraints) Definitions(path string, defs []AttributeDefinition) {
	for i, d := range defs {
		path := fmt.Sprintf("%sAttributeDefinitions.%d.member.", path, i+1)
		v.keyName(path+"AttributeName", d.AttributeName)
		v.Required(path+"AttributeType", d.AttributeType != nil)
		v.Enum(path+"AttributeType", d.AttributeType, "B", "N", "S")
	}
}

func (v Constraints) keyName(member string, name *string) {
	switch {
	case name == nil:
		v.Required(member, false)
	case *name == "":
		v.Fail(member, "''", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	case len(*name) > maxKeyNameChars:
		v.Fail(member, request.Quoted(*name), fmt.Sprintf(awserr.MsgMemberMaxLength, maxKeyNameChars))
	}
}

// KeySchema checks the key of a table or an index. most is the maximum number of
// attributes in the model, or 0 if it has no maximum.
func (v Constraints) KeySchema(member string, schema []KeySchemaElement, most int) {
	if len(schema) == 0 {
		if schema == nil {
			v.Required(member, false)
		} else {
			v.Fail(member, "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
		}
	}
	if most > 0 && len(schema) > most {
		elements := make([]string, len(schema))
		for i, e := range schema {
			elements[i] = fmt.Sprintf("KeySchemaElement(attributeName=%s, keyType=%s)", request.OrNull(e.AttributeName), request.OrNull(e.KeyType))
		}
		v.Fail(member, "'["+strings.Join(elements, ", ")+"]'", fmt.Sprintf(awserr.MsgMemberMaxLength, most))
	}
	for i, e := range schema {
		path := fmt.Sprintf("%s.%d.member.", member, i+1)
		v.keyName(path+"AttributeName", e.AttributeName)
		v.Required(path+"KeyType", e.KeyType != nil)
		v.Enum(path+"KeyType", e.KeyType, "HASH", "RANGE")
	}
}

// Projection checks the projection of an index.
func (v Constraints) Projection(member string, p *Projection) {
	if p == nil {
		v.Required(member, false)
		return
	}
	v.Enum(member+".ProjectionType", p.ProjectionType, "ALL", "INCLUDE", "KEYS_ONLY")
	if p.NonKeyAttributes != nil && len(p.NonKeyAttributes) == 0 {
		v.Fail(member+".NonKeyAttributes", "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	}
	if n := len(p.NonKeyAttributes); n > maxNonKeyAttributes {
		v.Fail(member+".NonKeyAttributes", "'["+strings.Join(p.NonKeyAttributes, ", ")+"]'", fmt.Sprintf(awserr.MsgMemberMaxLength, maxNonKeyAttributes))
	}
	if slices.ContainsFunc(p.NonKeyAttributes, func(name string) bool { return name == "" || len(name) > maxKeyNameChars }) {
		v.Fail(member+".NonKeyAttributes", "'["+strings.Join(p.NonKeyAttributes, ", ")+"]'",
			fmt.Sprintf(awserr.MsgMemberElements, fmt.Sprintf(awserr.MsgMemberMaxLength, maxKeyNameChars), fmt.Sprintf(awserr.MsgMemberMinLength, 1)))
	}
}

// Throughput checks provisioned units. A nil value means that the request has none.
func (v Constraints) Throughput(member string, t *ProvisionedThroughput) {
	if t == nil {
		return
	}
	for _, units := range []struct {
		name  string
		value *int64
	}{{"WriteCapacityUnits", t.WriteCapacityUnits}, {"ReadCapacityUnits", t.ReadCapacityUnits}} {
		switch {
		case units.value == nil:
			v.Required(member+"."+units.name, false)
		case *units.value < 1:
			v.Fail(member+"."+units.name, fmt.Sprintf("'%d'", *units.value), fmt.Sprintf(awserr.MsgMemberMinValue, 1))
		}
	}
}
