// Package dag holds a workflow's definition and answers every question about
// its shape: is it valid, what depends on what, in which order, in how many
// levels.
//
// Words: a definition is what the author wrote; a task is a node; a parent is a
// task named in depends_on, a child the reverse; a root has no parents, a sink
// no children; a level is the length of the longest way from a root. Tasks are
// addressed by their index in the file, which never changes.
//
// A Definition is immutable once it is validated, a Graph from its
// construction: both may be shared between goroutines. Everything here is
// linear in tasks plus dependencies and uses no recursion on them, since a
// chain may be as long as a user likes. All faults are reported at once.
//
// The package reads no file format (core/spec), evaluates no condition
// (core/cond) and knows nothing of a run (core/state).
package dag
