package mapfile

// Sealed is a Spec that shows no fields. The public package hands out mapping
// files so: their content is promised as YAML, not as Go.
type Sealed struct{ spec *Spec }

// Seal returns s as a Sealed, nil for nil.
func Seal(s *Spec) *Sealed {
	if s == nil {
		return nil
	}
	return &Sealed{s}
}

// Open returns what was sealed, nil for nil.
func (s *Sealed) Open() *Spec {
	if s == nil {
		return nil
	}
	return s.spec
}
