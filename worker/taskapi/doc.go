// Package taskapi is what a task can do from within: leave its output and read
// those of its parents.
//
// It works only on the files and environment variables that the worker prepared
// for the start, so it needs no store, no network and no credential, and any
// language can do the same without it. Everything may be called at any time
// while the task runs; of two outputs the last one counts.
package taskapi
