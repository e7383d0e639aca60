// Package guard keeps a guardian beside a worker: a process of our own program
// that kills the worker's commands when the worker cannot.
//
// The worker tells the guardian, over a pipe, which process groups run under
// which run id, and when the last successful beat of each was sent. The
// guardian kills a group, and whatever carries its run id elsewhere, when no
// newer beat was sent for 0.8 of its ttl, and everything when the pipe ends:
// however the worker dies, the kernel closes the pipe. It exits when the last
// group is gone and so drops the lock files that it inherited only then.
//
// The order for one start is Add, start, Started, any number of Beats, Remove.
// What was written to the pipe is read before its end is seen, also when the
// writer is dead by then; therefore nothing is acknowledged. Keeper holds the
// truth and tells it whole to each new guardian: a guardian that dies costs no
// command anything, see Keeper for the gap.
//
// The package decides nothing about attempts, and a guardian never reads a store.
package guard
