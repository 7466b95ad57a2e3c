// Package instancedef checks and completes the definitions of instances and
// their clusters: types and labels, zones and keys, storage, and nodes or
// autoscaling.
package instancedef
