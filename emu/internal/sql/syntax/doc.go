// Package syntax parses the statements of Bigtable's GoogleSQL into a tree with positions.
//
// [Parse] accepts queries. A construct of GoogleSQL that Bigtable does not have is an
// [Unsupported] error with its name and position; any other text is an [Error] in GoogleSQL's
// words. Names keep their letter case, and nothing is resolved: a path of names is a column or a
// field for the analysis to decide.
package syntax
