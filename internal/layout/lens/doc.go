// Package lens defines the terms that layouts and their users share: the key of a table and
// the conditions on it, the place of an item in a row, how items are read (a plan, its
// order, intervals of keys), and why an item is rejected. Package layout does the
// conversion.
package lens
