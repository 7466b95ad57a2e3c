// Package schema turns what the API says of a table into what the engine keeps, and
// back: the types of families' values, rules of garbage collection, and the settings
// that the engine has no place for.
package schema
