// Package wrap holds decorators of port.Store: what is policy and not the
// business of a driver.
//
// Retry repeats calls that failed for a passing reason. It decides by fault
// code alone and by what a repeat of the call can do, never by the driver. It
// never repeats a write of a workflow's state or a Finisher: after an unknown
// outcome only the coordinator's loop, which loads again, knows what to do.
//
// Waiting goes through an injected clock, so that it is virtual in tests and in
// the simulation. The package starts no goroutine.
package wrap
