// Package cond decides whether a task's condition holds: a restricted Python
// expression over the outputs of the task's parents.
//
// Parse reads the source with a parser of our own, Check and Compile hold it
// against the names of the parents, Evaluate computes the answer together with
// the values that made it. The meaning is Python's; docs/conditions.md lists
// the grammar and every rule. The control flow of a compiled program (short
// circuit, chained comparison, the loop of an aggregate) is run by expr-lang;
// what values mean is decided by the functions of this package alone, and no
// text of a user reaches the parser of expr-lang.
//
// An Expression and a Program are immutable and safe for concurrent use. For
// any source and any outputs the work is bounded: a source has at most 4 KiB,
// an evaluation at most ten million steps. The package does no input or output,
// reads no clock, and decides nothing about tasks: whether an error fails or
// skips a task is up to its caller.
package cond
