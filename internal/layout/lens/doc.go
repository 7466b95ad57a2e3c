// Package lens has the terms in which layouts and those who use them speak: the
// key of a table and the conditions on it, the place of an item in a row, how
// items are read (a plan, its order, intervals of keys), and why an item is
// refused. It lays out nothing: that is package layout's.
package lens
