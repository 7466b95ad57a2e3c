package facade

import (
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// validator extends request.Validator with checks that several operations share.
type validator struct{ request.Validator }

func (s *Server) validator(operation string) *validator {
	return &validator{request.NewValidator(s.opts.wording(operation))}
}

// tables returns the checks of table definitions, which record their failures in v.
func (v *validator) tables() tablespec.Constraints {
	return tablespec.Constraints{Validator: &v.Validator}
}

// readDepth selects the older layer if a value in a write of one item is nested so deeply that
// the service does so in all regions. That layer checks enums before it reports the nesting.
func (v *validator) readDepth(item *wire.Item, in *conditionInput, updates map[string]request.AttributeValueUpdate) {
	deep := item != nil && isDeep(item.Err)
	for _, value := range in.ExpressionAttributeValues {
		deep = deep || isDeep(value.Err)
	}
	for _, e := range in.Expected {
		deep = deep || e.Value != nil && isDeep(e.Value.Err)
		for _, value := range e.AttributeValueList {
			deep = deep || isDeep(value.Err)
		}
	}
	for _, u := range updates {
		deep = deep || u.Value != nil && isDeep(u.Value.Err)
	}
	v.Current = v.Current && !deep
}

// isDeep reports whether err rejects a value that is nested at least attr.MaxCountedDepth levels
// deep.
func isDeep(err error) bool {
	e, ok := errors.AsType[*attr.Error](err)
	return ok && e.Levels >= attr.MaxCountedDepth
}

// wording returns the wording of errors of an operation.
func (o Options) wording(operation string) request.Request {
	return request.Request{Operation: operation, Current: o.layers.Newer(operation)}
}
