// Package logs carries the output of one command into a stream of a store,
// byte for byte, and to whoever wants it line by line.
//
// Output is stored in chunks: when one is full, about a second after its first
// byte, and at the end. Chunks are stored one after the other, so the order of
// writes is the order of the stream. A store that does not answer never stops
// the command: what cannot be stored yet is kept up to a bound, then the oldest
// part is dropped and a line in the stream says how much. A chunk whose storing
// gave no answer is stored again and may then be there twice. The end of a log that
// was not stored within the patience of Close is stored when the store takes another
// log, or before the worker ends.
//
// The package does not know what a task is, and reads nothing.
package logs
