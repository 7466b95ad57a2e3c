package mapfile

// LeftOut is a part of a table that a mapping file names but does not lay out.
type LeftOut struct {
	Index string
	Why   string
}

// LeftOut returns the indexes that the mapping does not lay out, in the order of the file.
func (s *Spec) LeftOut() []LeftOut {
	var all []LeftOut
	for _, g := range s.Source.GSIs {
		if g.As == IndexAsNone {
			all = append(all, LeftOut{g.Name, "its mapping says as: none"})
		}
	}
	return all
}
