// Package worker receives tasks from queues and runs their commands.
//
// A Worker has a number of slots over one or more queues and takes no message
// for which no slot is free. What happens to a message is decided by package
// protocol; this package brings it the messages and runs the commands: the
// environment and the files of the child, its process group, its guardian, its
// logs and its output. Package taskapi is the other side of those files, used
// from within a task.
//
// Run owns every goroutine that it starts and returns when all have ended. The
// order of a stop: no more receives; commands are asked to end and killed after
// their grace; records and messages are given back; the guardian ends; the
// scratch directory goes. The package knows no workflow as a whole: that a task
// waits for others is none of its business.
package worker
