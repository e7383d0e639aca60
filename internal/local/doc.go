// Package local runs a workflow on this machine and nothing else: coordinator
// and workers in one process over the embedded store, with a queue name space
// of the run's own.
//
// A run that is killed at any moment goes on with the next Execute of the same
// id: what it had promised is in the store, the locks of a dead process are free
// at once, and its guardian has ended what was still running.
//
// The package wires; it decides nothing about workflows or tasks.
package local
