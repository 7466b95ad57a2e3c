// Package race tells tests whether the race detector is built into them: it
// allocates, and takes memory and time, so that what is counted with it says
// nothing of the program.
package race
