package facade

import (
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

// validator is a request's, with the checks that operations add to those of package
// validation.
type validator struct{ request.Validator }

func (s *Server) validator(operation string) *validator {
	return &validator{request.NewValidator(s.opts.wording(operation))}
}

// tables has the checks of what a table is to be.
func (v *validator) tables() tablespec.Constraints {
	return tablespec.Constraints{Validator: &v.Validator}
}

// wording is that of the answers to a request.
func (o Options) wording(operation string) request.Request {
	return request.Request{Operation: operation, Current: o.Messages == MessagesCurrent}
}
