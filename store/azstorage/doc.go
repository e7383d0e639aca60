// Package azstorage keeps everything of one prefix in Azure Storage: states,
// records, outputs, logs, leases and members in blobs, the index in a table,
// messages in queues. Names are those of ai4s-jobq wherever that has the thing.
//
// A call makes one attempt: repeats are the business of store/wrap. What an
// answer means is decided by its HTTP status and by the operation; the
// service's error code (a header, never a text) is asked only for what a status
// cannot tell: whether a blob or its whole container is missing, whether a
// message was too large, and whether a busy server did nothing. Where an answer has no such code the container is
// looked at.
//
// Conditional writes carry an ETag, or If-None-Match where they create. Ages of
// records, leases and members are the difference of two times of the service,
// in whole seconds; the clock of this process plays no part in them.
//
// Containers and table are made by Open alone and only when it is asked to: a
// container that was deleted under a running process is an outage to wait out,
// not a reason to start with an empty one. Queues are made by Ensure.
//
// A store is safe for concurrent use. It starts goroutines only inside a call
// that waits for them. Secrets of an account never reach an error or a log.
package azstorage
