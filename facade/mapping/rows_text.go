package mapping

// FormatRow appends the canonical text of a row, as goldens and dumps have it:
//
//	key [hex]
//	  family:qualifier @micros = value
//
// Families, qualifiers and versions come in the order of row.Cells; a value
// that is printable UTF-8 is quoted, others are hex. FamilyState is left out.
func FormatRow(dst []byte, row Row) []byte { return dst }
