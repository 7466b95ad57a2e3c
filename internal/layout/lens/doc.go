// Package lens defines the terms that layouts and their users share: checks of keys and key
// conditions, the place of an item in a row, and how items are read (a plan, its order, intervals
// of keys). Package layout converts items.
package lens
