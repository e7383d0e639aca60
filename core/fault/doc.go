// Package fault gives every error of jobq a code that programs can act on, a
// sentence that people can read, and the cause that explains it to us.
//
// The list of codes is closed: retry decisions, exit codes and HTTP statuses
// are tables over it. An error is classified once, at the edge where the
// foreign error is met, and wrapped once per boundary; nothing above that edge
// looks at the text of an error. The package knows nothing about what failed.
package fault
