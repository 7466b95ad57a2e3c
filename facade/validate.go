package facade

import (
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

// validator extends the validator of a request with the checks of operations.
type validator struct{ request.Validator }

func (s *Server) validator(operation string) *validator {
	return &validator{request.NewValidator(s.opts.wording(operation))}
}

// tables returns the constraints of table definitions.
func (v *validator) tables() tablespec.Constraints {
	return tablespec.Constraints{Validator: &v.Validator}
}

// wording returns the wording of the answers to an operation.
func (o Options) wording(operation string) request.Request {
	return request.Request{Operation: operation, Current: o.layers.Newer(operation)}
}
