// Package config holds the one table of settings of jobq: name, environment
// variables, default, kind, and the sentence that documents it. Flags, the
// environment, `jobq config show` and docs/config.md are made from that table.
//
// A value is taken from the first of these that has one: the flag, the
// environment variables in the order of the table, the default. Every value
// knows where it came from. Only what a verb uses is read, so that a wrong
// variable stops nobody whom it does not concern.
//
// A duration is written as text ("90s", "1h30m", "2d", "1w") or as a bare number
// of seconds; a size as a number of bytes or with KiB, MiB, GiB. Values are
// immutable and safe for concurrent use. The package does not read files.
package config
