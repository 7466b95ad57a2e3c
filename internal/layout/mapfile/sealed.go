package mapfile

// Sealed is a Spec without visible fields. The public package returns mapping files in
// this form: their content is stable as YAML, not as Go.
type Sealed struct{ spec *Spec }

// Seal returns s as a Sealed, nil for nil.
func Seal(s *Spec) *Sealed {
	if s == nil {
		return nil
	}
	return &Sealed{s}
}

// Open returns the sealed Spec, or nil for nil.
func (s *Sealed) Open() *Spec {
	if s == nil {
		return nil
	}
	return s.spec
}
