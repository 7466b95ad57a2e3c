//go:build !race

package race

// Enabled says that this binary looks for data races.
const Enabled = false
