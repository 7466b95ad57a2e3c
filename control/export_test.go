package control

// SetRowLevels sets the size from which a row is marked and the size that a row must not
// exceed.
func (s *Server) SetRowLevels(large, huge int64) { s.rowLevels = rowLevels{large: large, huge: huge} }
