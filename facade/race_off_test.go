//go:build !race

package facade

// raceDetector says that this test binary looks for data races.
const raceDetector = false
