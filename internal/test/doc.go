// Package test contains test helpers that several packages use, and the tests of the whole module.
//
//   - lint: the rules of the module, as tests.
//   - long: the two tiers of tests; memory: measurements of memory; property: fewer cases of
//     property tests; stress: the quick tier beside busy loops.
//   - model, metamorphic: a naive Bigtable, and random operations on it and on the engine. model
//     shares only types and errors with the engine.
//   - failures: failing Bigtables behind the DynamoDB endpoint and the loader.
//   - faultdisk: disks that fail.
//   - labserver: a lab with its control API; serveout: the output of tabletop serve;
//     streamwalk: the records of a DynamoDB stream.
//   - intercept: calls functions of a test between a client and its Bigtable.
//   - peer: the Bigtables under tests of the DynamoDB endpoint, such as Google's bttest;
//     synthetic: tables of items.
//   - race: whether the race detector runs; cputime: the CPU time of benchmarks; costs: baselines
//     of allocations and calls; faketb: a testing.TB for examples.
package test
