// Package race tells tests whether they are built with the race detector: it
// allocates, and takes memory and time, so that figures measured with it say
// nothing about the program.
package race
