// Package archtest holds the architecture as tests that fail: who may import
// whom, and where the standard library stops. It has no code of its own; a new
// edge needs a decision record in docs/decisions and a line in the table.
package archtest
