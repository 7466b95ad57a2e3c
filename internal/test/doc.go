// Package test contains test helpers that several packages use, and the tests of the whole module.
//
//   - lint: checks the rules of the module.
//   - long: separates the two tiers of tests; memory: measures memory; property: limits the cases
//     of property tests; stress: repeats the quick tier next to busy loops.
//   - model, metamorphic: implement a naive Bigtable, and run random operations on it and on the
//     engine.
//   - bombs: tests small inputs that expand in the server.
//   - failures: tests the DynamoDB endpoint and the loader over failing Bigtables.
//   - faultdisk, heldfile: provide disks that fail, and files that open only on request.
//   - labserver: starts a lab with its control API; serveout: reads the output of tabletop serve;
//     streamwalk: reads the records of a DynamoDB stream.
//   - peer: wraps Google's bttest; synthetic: generates tables of items.
//   - race: reports whether the race detector runs; cputime: measures the CPU time of benchmarks;
//     faketb: implements testing.TB for examples.
package test
