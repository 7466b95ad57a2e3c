package btkit

// Dump returns all rows of a Bigtable table of the environment's instance as
// the canonical text of fixtures' golden files: rows by key, cells in storage
// order, one per line. The DynamoDB endpoint's bookkeeping is left out, and so are
// rows that hold nothing else.
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

// DumpAll returns all tables of all instances as one text that is a valid
// golden file: for each table a line with its name, one comment per family
// with its rule, and its rows as in Dump. Tables are sorted by name, those of
// instances other than the environment's with their full name; the tables that
// the DynamoDB endpoint keeps for itself are left out. Before the tables come, as
// comments with their JSON, the instances, clusters, app profiles, authorized
// views and schema bundles that were created and the policies that were set; what
// exists implicitly is not shown. Last come, as comments too, the changes of DynamoDB items
// that wait for a Kinesis data stream, as it gets them.
func (e *Env) DumpAll() string {
	e.server.TB().Helper()
	text, err := e.server.Lab().DumpAll(e.server.Context())
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return text
}
