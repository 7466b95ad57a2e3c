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
		switch g.As {
		case IndexAsNone:
			all = append(all, LeftOut{g.Name, "its mapping says as: none"})
		case IndexAsView:
			all = append(all, LeftOut{g.Name, "it is a continuous materialized view (as: view), which must be created with its query and then follows the table"})
		}
	}
	return all
}
