// Package busstand is a stand-in for Azure Service Bus, for tests: a server in
// this process that speaks AMQP 1.0 over TCP (and the small part of the
// management API over HTTP on the same port), with real peek locks, lock
// tokens, delivery counts, scheduled messages, dead-letter queues and duplicate
// detection.
//
// One mutex guards all of a Server. Nobody writes to a network with it held:
// what is to be sent is put behind a connection's buffer, which a goroutine of
// that connection drains, so a slow reader holds nobody up. Time is the clock of
// Options plus what Advance added. Locks belong to the queue, not to the link
// that delivered them: they outlive a dropped connection, as the service's do.
//
// Sessions, topics, transactions and real authorization are not there.
package busstand
