// Package faults wraps a store so that a test decides the fate of every call: it
// fails before it has an effect, its answer is lost after it had one, it takes
// time, or the process that makes it stops there.
//
// A wrapped store is one process: its calls are numbered from 1 in the order in
// which they begin, across all interfaces, and once it has stopped every further
// call fails. Wrap the same store twice for two processes. Safe for concurrent
// use; with calls side by side the numbers depend on the scheduler.
//
// It is for tests and simulations and never repeats, hides or repairs anything.
package faults
