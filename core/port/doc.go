// Package port is what jobq needs from the outside, as small interfaces with a
// written contract. It holds no code that talks to anything.
//
// Contract of every method, unless its comment says otherwise:
//
//   - It makes one attempt and never retries; retry policy is a wrapper.
//   - It may be called by any number of goroutines and processes at once.
//   - It keeps no slice that it is given, and the caller owns what it returns.
//   - It honours ctx and returns before long after ctx ends.
//   - Errors carry a code of core/fault. fault.Unavailable on a write means that
//     the write may or may not have happened; every other code means that it did
//     not. fault.NotFound means that exactly the named thing is absent while the
//     place that would hold it was read: a missing container or file system is
//     fault.Unavailable.
//   - A name is any UTF-8 text; a driver that restricts characters escapes them
//     reversibly.
//
// What a driver cannot do is declared in Props and QueueProps, never discovered.
// The suite in store/storetest holds every driver to these sentences.
package port
