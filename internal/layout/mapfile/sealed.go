package mapfile

// Sealed is a Spec without visible fields. The public package returns mapping files in this form,
// because their contents are stable as YAML but not as Go types.
type Sealed struct{ spec *Spec }

// Seal returns s as a Sealed, or nil if s is nil.
func Seal(s *Spec) *Sealed {
	if s == nil {
		return nil
	}
	return &Sealed{s}
}

// Open returns the sealed Spec, or nil if the Sealed is nil.
func (s *Sealed) Open() *Spec {
	if s == nil {
		return nil
	}
	return s.spec
}
