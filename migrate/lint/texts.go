package lint

import (
	"strconv"
)

// bytesText formats a number of bytes.
func bytesText(n float64) string {
	for _, u := range []struct {
		name  string
		bytes float64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if n >= u.bytes {
			return strconv.FormatFloat(n/u.bytes, 'f', decimals(n/u.bytes), 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(n, 'f', 0, 64) + " bytes"
}

// decimals returns the number of useful digits after the point of n.
func decimals(n float64) int {
	if n == float64(int64(n)) {
		return 0
	}
	return 1
}

// percent formats a share.
func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'f', decimals(share*100), 64) + "%"
}
