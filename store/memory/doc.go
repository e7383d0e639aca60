// Package memory keeps everything of one prefix in the memory of this process.
// It serves tests and the simulation and is held to the same suite as the
// durable drivers.
//
// Every method is one atomic step under one mutex, tags are drawn from one
// counter and nothing is iterated in map order, so that one order of calls
// gives one history. A Receive that waits does so on channels and timers,
// outside the mutex: inside a testing/synctest bubble its time is virtual.
// Several processes on the same data are handles made by Store.Process; one of
// them can be killed.
//
// Nothing survives the Store. Sizes are checked, speed is not a goal.
package memory
