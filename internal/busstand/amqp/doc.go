// Package amqp is as much of AMQP 1.0 (OASIS, parts 1 to 3) as a server for
// tests needs: the type system, frames, and the sections of a message.
//
// A value is a Go value of the fixed types that are listed at Decode; encoding
// what was decoded gives an equal value again. Bytes from the network are never
// trusted: a size or a count is checked against what is there before anything
// is allocated, nesting is bounded, and no input panics.
//
// The package opens no connection and keeps no state; everything is safe for
// concurrent use as long as nobody changes a shared value.
package amqp
