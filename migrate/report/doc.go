// Package report holds the results of a load, a verification or a comparison, and writes
// them as text, JSON, JUnit XML and one page of HTML.
//
// What it promises: all differences are counted, and the first of them listed, each with
// its place; consequences of a failed item are not listed as further faults.
//
// What it does not do: it takes no action. Package migrate loads and compares, and records
// its findings here. Functions, and methods that record, are exported for other packages of
// migrate, without a promise of stability; the data of a [Report] and the ways to write one
// are stable.
package report
