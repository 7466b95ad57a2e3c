package facade

import (
	"github.com/tabletop-emu/tabletop/facade/internal/tableschema"
	"github.com/tabletop-emu/tabletop/facade/internal/validation"
	"github.com/tabletop-emu/tabletop/facade/internal/wording"
)

// validator is a request's, with the checks that operations add to those of package
// validation.
type validator struct{ validation.Validator }

func (s *Server) validator(operation string) *validator {
	return &validator{validation.New(s.opts.wording(operation))}
}

// tables has the checks of what a table is to be.
func (v *validator) tables() tableschema.Constraints {
	return tableschema.Constraints{Validator: &v.Validator}
}

// wording is that of the answers to a request.
func (o Options) wording(operation string) wording.Request {
	return wording.Request{Operation: operation, Current: o.Messages == MessagesCurrent}
}
