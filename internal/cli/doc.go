// Package cli is the command line of jobq: one file a verb, one place each for
// tables and JSON, for exit codes and for errors.
//
// Data goes to standard output, everything else to standard error. Every verb
// reads its settings from the table of internal/config. STORAGE/PREFIX (for
// `worker` STORAGE/QUEUE) stands in front of the verb, after the word "workflow"
// or without it; a flag for all verbs may stand anywhere.
//
// Main may be called several times in one process and keeps nothing between two
// calls. Signals are the caller's: when its context ends, a verb stops cleanly.
// The package decides nothing about workflows: that is core/coord.
package cli
