// Package obs decides how jobq talks to the people who operate it: the form and
// level of log lines, and the names of their attributes.
//
// Loggers are made once, at the top of a program, and injected; nothing here is
// global. A logger is safe for concurrent use and writes each line with one
// call. The package keeps no metrics.
package obs
