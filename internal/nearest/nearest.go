// Package nearest finds the known name that is closest to a misspelled name.
package nearest

import "strings"

// To returns the known name that is closest to a word, or "" if no name is close. The name differs
// by at most two changes, and by less than half of the word's letters. Case is ignored.
func To(word string, known []string) string {
	least, found := min(2, (len(word)-1)/2)+1, ""
	for _, name := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			least, found = d, name
		}
	}
	return found
}

// distance returns the number of bytes to insert, delete or change between two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the texts before i and j
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
