// Package azbus keeps task queues and inboxes in Azure Service Bus.
//
// All queues of a namespace share one AMQP connection. A call that finds it
// broken drops it, and the next call makes a new one. Beside the links that
// receive, a queue has at most one that sends and one for management. A message
// is settled on the link that it came by where that is still there, else through
// management by its lock token, so a receipt is good in every process and
// outlives its link.
//
// The client's own repeats are off: store/wrap repeats. (Where the client
// settles a message it cannot be told so; a bound of time ends it.) A receive asks
// for no more than its caller wants. What arrives after it has ended is given
// back by the client at once, which the service may count as a delivery.
//
// Release sends a copy under an id that follows from the lock token and then
// completes the original, so that a message given back never nears the
// dead-letter queue and a repeat makes no second copy. The copy carries how often
// its message was delivered.
//
// Sessions are not used. The caller brings the credential and closes Bus.
package azbus
