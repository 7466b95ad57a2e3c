// Package tabletop is the root of a Cloud Bigtable that runs in your process,
// with a DynamoDB door over the same rows, and of the tools that take DynamoDB
// data to Bigtable and prove the result. The package itself is empty; this is
// the map.
//
// # Packages
//
// To use, in Go tests:
//
//   - testkit starts a private server for a test, with the official client of
//     each side: testkit.Start(t).
//
// To use, in programs (the API that is kept stable):
//
//   - emu is the Bigtable gRPC server over an engine: emu.New.
//   - facade is the DynamoDB HTTP server over a connection to any Bigtable:
//     facade.New.
//   - facade/mapping turns items into rows and rows back into items, as a YAML
//     file describes: mapping.Load. facade/attr has the values of items.
//   - migrate loads DynamoDB data through a mapping, and compares the rows, the
//     items and the answers of both doors: migrate.Load, migrate.Verify. Its verbs and
//     their options are kept, source.Open, source.OpenFS and what they return, and the
//     data of report.Report; no more of the packages below it.
//     migrate/source reads exports and files, migrate/infer finds mappings,
//     migrate/report is what was found and how it is shown,
//     migrate/lint judges tables, mappings and access patterns by the design guides.
//     Below it, migrate/internal/run lays out, writes, reads back and compares,
//     migrate/internal/golden has the golden rows of fixtures,
//     migrate/internal/doors asks through both doors, and
//     migrate/internal/differential draws items and requests from a mapping;
//     migrate/internal/tabletsim has a load's own code write to a model.
//   - fixtures is the format of fixture folders: sources, access patterns and
//     golden files, and those that ship with the project. fixtures.Open, Subjects, Clock
//     and Fixture are kept, but for what is of a type of an internal package.
//   - cmd/tabletop is the binary, cmd/cbtemulator a drop-in for Google's
//     emulator of that name.
//
// Inside, the Bigtable:
//
//   - engine is the sorted storage on Pebble; exported for emu's callers, without
//     a promise of stability.
//   - engine/internal/memfs is the file system that a store in memory lives in,
//     engine/internal/guardfs keeps errors of the disk from Pebble.
//   - emu/doc.go names the packages below emu. testkit/internal/iam evaluates IAM policies,
//     internal/hllpp is the sketch of HLL families.
//   - internal/inproc is the gRPC channel without a wire between facade and emu.
//
// Inside, the DynamoDB and the migration:
//
//   - facade/expr has DynamoDB's four expression languages, facade/internal/wire the frame of its requests and answers,
//     facade/internal/legacy the parameters from before expressions,
//     facade/internal/validation what a request may say, by the API model,
//     facade/internal/readsource what a Query or a Scan goes by,
//     facade/internal/wording what is wrong with requests, as AWS says it,
//     facade/internal/hashorder the order of names in it, facade/internal/tags the tags of tables,
//     facade/internal/policy their resource policies, facade/internal/insights their
//     contributor insights, facade/internal/globaltables that there are no global tables, facade/internal/tableschema what requests say of keys and indexes,
//     facade/internal/partiql the statements of PartiQL,
//     facade/internal/capacity counts what operations consume, facade/internal/throttle refuses what is too much, facade/internal/keyrules
//     checks keys and items, facade/internal/itemupdate applies updates.
//   - facade/internal/store keeps items in rows: catalog, transactions, indexes;
//     facade/internal/namespaces keeps the stores of callers apart,
//     facade/internal/store/marks says which rows may hold what is left to do,
//     facade/internal/store/logs keeps the logs of changes,
//     facade/internal/store/extent makes filters of the places of items,
//     facade/internal/store/progress tells how far work on all of them is,
//     facade/internal/store/history reads tables as they were,
//     facade/internal/store/inorder merges and sorts items,
//     facade/internal/store/lanes lets calls go side by side, facade/internal/store/segment divides rows for parallel scans,
//     facade/internal/store/cuts keeps where they are cut,
//     facade/internal/sizes says when they are counted, facade/internal/tabledef is
//     what a table and its indexes are.
//   - facade/internal/changelog is what the log of a table's changes holds, and its numbers;
//     facade/internal/streams what DynamoDB Streams makes of it, facade/internal/kinesis
//     what Kinesis data streams get of it, facade/internal/kinesis/worker delivers that;
//     facade/internal/jobs is work that outlives its request,
//     facade/internal/backups the recovery of tables.
//   - internal/layout is the machine of mappings; internal/layout/mapfile has the
//     model of their files, internal/layout/lens the terms of keys, places and
//     plans, internal/layout/rowkey the encoders and templates of row keys,
//     internal/layout/codec the values of cells, internal/layout/unmapped the rows
//     of tables without a mapping file, internal/layout/secondary those of indexes,
//     internal/layout/rowtext rows as text, internal/layout/loadnote what a load notes
//     of its mapping, internal/layout/edge the values that mappings are attacked with.
//   - internal/preflight looks whether a Bigtable can be used;
//     internal/btclient is the one client of a Bigtable, internal/cells the rows
//     and cells that it reads and writes; internal/rowmerge joins the pieces in
//     which rows arrive.
//   - internal/s3export is the format of DynamoDB's exports to S3, and their writer;
//     internal/iontext the Ion text of items, internal/csvtext the records of CSV;
//     facade/internal/importfile reads the files of imports, facade/internal/bucketjobs
//     does exports and imports.
//   - internal/ddbmodel is a naive DynamoDB, which tests and differential runs
//     compare the facade with.
//
// Inside, for all:
//
//   - internal/extsort sorts and finds duplicates, on disk if memory is not
//     enough; internal/phrase has the texts that reports and messages share.
//   - control is the HTTP API by which a running server is experimented with,
//     control/lab a store with its doors to do so: time, faults, snapshots;
//     control/lab/changestream reads its change streams.
//     control/console is its pages, control/internal/requests keeps the last requests, control/internal/access writes
//     them as access patterns, internal/hosts says by which names a server may be asked.
//   - internal/heat counts what requests do to which keys, internal/cause says which request of
//     DynamoDB a call is made for, internal/probe that it is of no client.
//   - internal/clock is the time source, internal/days reads durations, internal/pull
//     turns sequences into iterators, internal/nearest finds the name that somebody
//     meant.
//   - internal/httpbody reads and packs the bodies of HTTP messages,
//     internal/strictyaml is the one strict reader of YAML, internal/filelock locks
//     files between processes.
//
// Tests of the whole, and what they need:
//
//   - internal/lint holds the module's rules as tests.
//   - internal/test/long separates the quick tier of tests from the long one, whose tests
//     internal/test/long/tests.tsv lists; internal/test/memory measures memory,
//     internal/test/property limits the cases of property tests, and
//     internal/test/stress repeats the quick tier beside busy loops.
//     conformance/internal/program builds the programs that tests start.
//   - internal/model and internal/metamorphic compare the engine with a naive one.
//   - internal/bombs sends small inputs that would grow large, internal/faultdisk makes
//     disks fail, internal/heldfile gives a file when a test says so,
//     internal/failures lets the Bigtable behind the doors and the loader fail,
//     migrate/internal/exporttest builds exports, intact and damaged.
//   - internal/peer is Google's bttest, internal/synthetic makes tables of items,
//     internal/race reports whether the race detector is on, internal/cputime counts
//     the processor time of benchmarks.
//
// The module conformance tests the program as its users see it:
//
//   - conformance runs the official clients against a running server, and
//     conformance/bigtable-client the Go client's own suite.
//   - conformance/clients runs the clients of the control API in clients/,
//     conformance/html opens reports in a browser, and conformance/console the pages of a
//     server.
//   - conformance/linear checks that concurrent calls have a sequential order,
//     conformance/soak runs many clients for a long time.
//   - conformance/benchcompare measures the program against its peers.
//
// # Layers
//
// An arrow points at what a package may import; tests enforce it.
//
//	engine <- emu <- control/lab <- testkit
//	engine <- emu <- testkit -> migrate -> facade -> facade/{attr,expr,mapping}
//	                 testkit, migrate -> fixtures -> internal/layout
//	                 facade/mapping -> internal/layout
//	                 control -> control/lab, migrate, fixtures
//	                 cmd/tabletop -> engine, emu, facade, control, migrate, fixtures
//
// The facade never sees an engine: it uses only what any Bigtable can do, over any
// connection. So nothing passes here thanks to a shortcut that production lacks.
//
// # Where things are
//
// A file is named after what a reader looks up. The RPC ReadRows is in
// emu/read_rows.go, an operation of table administration in emu/admin_*.go, a
// row filter in emu/internal/filter, the DynamoDB operation PutItem in
// facade/op_put_item.go. Limits are in limits.go of emu and facade; those of a request's body in
// facade/internal/wire, of values and expressions in facade/attr and facade/expr, of row
// keys in internal/layout/lens. Error texts are in
// emu/internal/refusal on the Bigtable side; on the DynamoDB side in
// facade/messages.go, facade/internal/{wire,legacy,keyrules,bucketjobs}/messages.go, facade/internal/partiql/errors.go, facade/attr/error.go and
// facade/expr/error.go; facade/testdata/messages.tsv and emu/testdata/traps.tsv are
// the catalogs of texts and traps. In the engine, what expires is decided in
// gc.go. How the store finishes what a crash left is in
// facade/internal/store/transaction_recovery.go. A flag of the binary is in
// cmd/tabletop/<command>.go, one that several verbs of migrate share in
// cmd/tabletop/migrate*.go. Lint rules are in the table of their subject in
// migrate/lint: look for their number there, as in `"L11"`. What a load of increments
// takes away is in migrate/internal/run/catch_up.go. What a failure of a report stands
// for is said in migrate/report.
//
// What is supported is listed in emu.Support and facade.Operations, and in
// docs/support.md, which is generated from them.
package tabletop

//go:generate go test ./internal/lint -count=1 -run TestSupportTables -update
