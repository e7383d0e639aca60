// Package msg holds what travels between coordinator and worker and the bytes
// it travels as: task messages, completions, wakes and commands, references to
// outputs, and the names and message ids that both sides derive.
//
// The bytes are those of ai4s-jobq: an envelope of JSON text in the form of
// Python's json.dumps (a blank after comma and colon, ASCII only), its kwargs a
// string that holds JSON once more. Our additions are further kwargs that start
// with two underscores; readers of either side ignore what they do not know.
// Users' own keys of that form never reach the wire.
//
// Everything is a pure function of its arguments and safe for concurrent use.
// Decoding accepts any bytes without panic and fails with fault.Invalid; it
// does not check whether a workflow or a task exists.
package msg
