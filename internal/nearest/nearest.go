// Package nearest finds the name that somebody may have meant.
package nearest

import "strings"

// To is the one of the known names that is nearest to a word, "" where none is near:
// it takes no more than two changes, and less than half of the word's letters. Case
// does not count.
func To(word string, known []string) string {
	least, found := min(2, (len(word)-1)/2)+1, ""
	for _, name := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			least, found = d, name
		}
	}
	return found
}

// distance is how many bytes have to be put in, left out or changed to make one
// text of another.
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
