// Package state holds the runtime state of one workflow: the statuses, the
// only table of legal moves between them, the document in its compact columnar
// form, and the codec with its versions.
//
// The document is plain data. It is owned by one goroutine at a time and
// changed by package engine alone; the definition that it belongs to is stored
// apart and never changes, so a task is known here by its position in it.
//
// The codec promises that every column and section that a newer program wrote
// survives a load and save by this one, and that a document of a format above
// this program is refused as fault.TooNew, never judged.
package state
