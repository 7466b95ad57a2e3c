// Package report holds the results of a load, a verification or a comparison, and writes
// them as text, JSON, JUnit XML and one page of HTML.
//
// What it promises: all differences are counted, the first of them listed, each with
// its place; what follows from an item that has failed is not listed as another fault.
//
// What it does not do: it acts on nothing. Who loads and compares is package migrate,
// which records here what it finds. Its functions and the methods that record are exported
// for the packages beside it, without a promise of stability; the data of a [Report] and
// the ways to write one are kept.
package report
