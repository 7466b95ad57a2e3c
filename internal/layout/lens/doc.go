// Package lens defines the terms that layouts and their users share: checks of keys and of
// conditions on them, the place of an item in a row, and how items are read (a plan, its
// order, intervals of keys). Package layout does the conversion.
package lens
