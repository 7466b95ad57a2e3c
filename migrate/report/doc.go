// Package report holds the results of a load, a verification or a comparison, and writes
// them as text, JSON, JUnit XML and one page of HTML.
//
// A report counts all differences, and lists the first of them with their locations. It
// does not list consequences of a failed item as further faults.
//
// The package only records: package migrate loads and compares, and adds its findings
// here. The data of a [Report] and the ways to write one are stable. Functions, and
// methods that add to a report, are exported for other packages of migrate, without a
// promise of stability.
package report
