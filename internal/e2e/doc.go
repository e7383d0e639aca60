// Package e2e tests the built program as a user meets it: real processes, real
// commands, real kills. It has no code of its own. The tests build the program,
// or take the one that JOBQ_BIN names.
package e2e
