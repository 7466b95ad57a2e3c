// Package plan describes analyzed queries: a tree of operators over rows, with typed expressions.
//
// A row is a list of values, called slots. Each operator documents the slots of its output in terms of its
// input. Expressions refer to slots by number, so execution looks nothing up by name.
//
// A plan does not change after its analysis, and any number of executions may use it at once.
package plan
