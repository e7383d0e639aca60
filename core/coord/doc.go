// Package coord applies events to stored workflows. It is the shell around
// package engine: the one loop that every way of being called goes through
// (queue trigger, timer, standalone process, local run, command).
//
// The order inside the loop is what makes it safe to stop anywhere:
//
//  1. load (a cached state costs no read) and apply every event;
//  2. evaluate conditions that wait for a verdict, until none is left;
//  3. save under compare-and-swap; a conflict or an unknown outcome goes back to
//     1 with a fresh state, where what was saved is a repeat;
//  4. only then send, end attempts through their records, write the index row;
//  5. where something is left over: save the marks of accepted sends, put one
//     delayed wake;
//  6. acknowledge last.
//
// Whoever stops between two steps leaves either an unacknowledged message,
// whose next delivery finds the unsent intents in the state, or a claim row
// that the sweep reads. A re-send is preceded by a save as a first send is, so
// that of two who find the same trace one sends. What this process did that no
// stored state shows (accepted sends, wakes, rows) is kept in a note a workflow,
// which outlives every lost save. Nothing here relies on being the only
// coordinator, on one delivery, or on the clock of this machine.
//
// The package starts no goroutine and reads no clock but through core/sched. It
// knows no driver, no HTTP and no process.
package coord
