//go:build race

package main

// raceDetector says that this test binary looks for data races.
const raceDetector = true
