// Package pending stores resources in their final state, with the time at which
// they reach it. Earlier states are computed from that time and the clock, even
// after a restart.
package pending
