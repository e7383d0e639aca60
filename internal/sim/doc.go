// Package sim plays whole installations on virtual time: coordinators, workers,
// callers, queues and a store in which calls fail, processes stop and clocks
// differ, and judges every history by what docs/correctness.md promises.
//
// One seed gives one history, byte for byte, on every machine. Actors are
// coroutines of which one runs at a time; every call of the store is a point at
// which another may go on. The coordinator, the commands of callers and the
// worker's protocol loop are those of production; only the shell command itself
// is modelled.
//
// The oracles see the effects on the store and the commands that ran, never the
// inside of a program. Nothing here retries, sleeps or logs by itself.
package sim
