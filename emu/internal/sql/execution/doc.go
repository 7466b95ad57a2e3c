// Package execution runs plans of SQL queries, row by row, over the cells of tables.
//
// Rows flow from the scans upward, and no operator holds more than one, except those that need all rows
// before their first result: Sort, Aggregate, Window and Unpack. Their memory counts against a limit, beyond
// which the query fails.
//
// A row and its values are valid until the next row is read: operators that keep values clone them.
package execution
