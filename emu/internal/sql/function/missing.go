package function

// missingTable has the documented functions that are not implemented. Geography is refused by
// Lookup; UNPACK is part of FROM, and the analysis has WRITE_TIMESTAMP, which reads a cell.
func missingTable() []*Function {
	var table []*Function
	for _, name := range []string{
		"FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "LAG", "LEAD", "PERCENTILE_CONT", "PERCENTILE_DISC",
		"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "CUME_DIST", "PERCENT_RANK",
	} {
		table = append(table, &Function{Name: name, Window: true, missing: true})
	}
	return table
}
