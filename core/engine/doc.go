// Package engine decides what happens to a workflow. It is pure: given a plan,
// a state, an event and the time, Step changes the state and says in values
// what the outside must do. It knows no context, clock, network, goroutine or
// random number, and no map order reaches a result.
//
// Order that the caller owes: a state that Step changed is saved before any of
// the returned sends leave the process; a send that the queue accepted comes
// back as the event Dispatched; a message is acknowledged last. Whoever stops
// in between loses nothing, because Outstanding says again what a loaded state
// still wants.
//
// A Run belongs to one goroutine at a time. A Plan is immutable and shared.
// The package evaluates no condition and reads no output: it asks for a
// verdict (Need) and takes it as the event Verdict.
package engine
