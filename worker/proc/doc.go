// Package proc runs one command of a task in a session and process group of
// its own, and ends that group for good.
//
// The order of an ending is fixed: the leader exits; what is left of its group
// is killed; the leader is reaped; the output is drained; the group is awaited.
// The leader stays unreaped until the kill is out, so the number of its group
// cannot have passed to a stranger by then. The exit code of the leader decides
// the result, an output pipe that something keeps open does not.
//
// Every function may be called by any number of goroutines at once. There is no
// package state: the caller says how many commands run. The package knows
// nothing about tasks, attempts or stores, and retries nothing.
package proc
