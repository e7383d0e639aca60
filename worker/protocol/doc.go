// Package protocol deals with one message of a task queue: it claims the
// attempt, has its command run, and reports how it ended.
//
// The attempt record decides everything. The order is fixed: claim the record;
// read the workflow's row; run the command while the record beats; write
// "ended" into the record; send the completion; acknowledge the message. A stop
// between any two steps is repaired by whoever receives the message next: a
// record that ended is reported again and never run again, one that is stale is
// taken over by a further start. Nobody but the holder touches a record that is
// held, and it is given up only when no process of the command is left.
//
// Losing the lock of the message alone stops nothing: another receiver meets
// the held record and steps back.
//
// Only the scheduler starts work, waits and tells the time here, and only
// core/port reaches the outside, so that a simulation can put a model in the
// place of the command (Runner). The package does not receive messages, start
// processes or read files.
package protocol
