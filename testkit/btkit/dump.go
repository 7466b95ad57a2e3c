package btkit

// Dump returns all rows of a Bigtable table of the environment's instance as the canonical
// text of fixtures' golden files: rows by key, cells in storage order, one per line. It omits
// the DynamoDB endpoint's bookkeeping, and rows with nothing else.
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

// DumpAll returns all tables of all instances as one text that is a valid golden file: for
// each table a line with its name, one comment per family with its rule, and its rows as in
// Dump. Tables are sorted by name; tables of other instances than the environment's have their
// full name. It omits the DynamoDB endpoint's own tables. Comments before the tables have the
// JSON of the created instances, clusters, app profiles, authorized views and schema bundles,
// and of the policies that were set, without implicit resources. Comments at the end have the
// changes of DynamoDB items that wait for a Kinesis data stream, in the stream's form.
func (e *Env) DumpAll() string {
	e.server.TB().Helper()
	text, err := e.server.Lab().DumpAll(e.server.Context())
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return text
}
