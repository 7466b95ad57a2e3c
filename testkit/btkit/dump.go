package btkit

// Dump returns all rows of a Bigtable table of the environment's instance in the format of the
// golden files of fixtures: rows by key, and cells in storage order, one per line. It omits the
// DynamoDB endpoint's bookkeeping cells, and rows that contain only such cells.
//
// table is the id of the Bigtable table, or the name of a DynamoDB table whose items it holds.
func (e *Env) Dump(table string) string {
	e.server.TB().Helper()
	text, err := e.server.Lab().Dump(e.server.Context(), table)
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return text
}

// DumpAll returns all tables of all instances as the text of a golden file. Each table has a line
// with its name, one comment per family with its garbage-collection rule, and its rows as in Dump.
// Tables are sorted by name; tables outside the environment's instance have their full name. The
// DynamoDB endpoint's internal tables are omitted. Comments before the tables hold, as JSON, the
// created instances, clusters, app profiles, authorized views and schema bundles, and the IAM
// policies that were set; implicit resources are omitted. Comments at the end hold the changes of
// DynamoDB items that have not yet reached their Kinesis data stream, in the stream's format.
func (e *Env) DumpAll() string {
	e.server.TB().Helper()
	text, err := e.server.Lab().DumpAll(e.server.Context())
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return text
}
