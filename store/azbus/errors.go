package azbus

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"jobq/core/fault"
)

// busyPause is how long the service wants to be left alone when it is busy.
const busyPause = 10 * time.Second

// fail classifies err of a call for ctx.
func (q *queue) fail(ctx context.Context, err error, doing string) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	where := doing + " queue " + q.name + " of " + q.bus.o.Namespace
	switch {
	case ctx.Err() != nil:
		return fault.Wrapf(fault.Canceled, context.Cause(ctx), "%s was stopped", where)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.Wrapf(fault.Unavailable, err, "%s had no answer in time", where)
	}
	switch code := codeOf(err); code {
	case fault.NotFound:
		return fault.Wrapf(code, err, "queue %s does not exist in %s", q.name, q.bus.o.Namespace).
			WithRemedy("create the queue, or give this identity the right to manage the namespace")
	case fault.LeaseLost:
		return fault.Wrapf(code, err, "a message of queue %s is no longer locked for us", q.name)
	case fault.Denied:
		return fault.Wrapf(code, err, "%s is not allowed", where).
			WithRemedy("give this identity the role Azure Service Bus Data Owner, or Sender and Receiver, on the namespace")
	case fault.Throttled:
		return fault.Wrapf(code, err, "%s was refused: the service is busy", where).WithRetryAfter(busyPause)
	default:
		return fault.Wrapf(code, err, "%s failed", where)
	}
}

// failOn classifies err of a call for ctx on c, before the caller discards c.
//
// Where another call has discarded c, the client was closed under this one and
// says so as a fault of its user, or that a right is missing, since a token and a
// link were of two connections. Neither is said by a new connection. What is said
// about the queue or the message holds.
func (q *queue) failOn(ctx context.Context, c *connection, err error, doing string) error {
	failure := q.fail(ctx, err, doing)
	if code := fault.CodeOf(failure); !c.discarded.Load() || code != fault.Internal && code != fault.Denied {
		return failure
	}
	return fault.Wrapf(fault.Unavailable, err, "the connection to %s was given up: %s queue %s failed", q.bus.o.Namespace, doing, q.name)
}

// conditions are those that the client hands on. Every other it calls a lost
// connection and hides.
var conditions = map[amqp.ErrCond]fault.Code{
	amqp.ErrCondNotFound:                fault.NotFound,
	amqp.ErrCondUnauthorizedAccess:      fault.Denied,
	amqp.ErrCondNotAllowed:              fault.Invalid,
	amqp.ErrCondMessageSizeExceeded:     fault.TooLarge,
	amqp.ErrCondResourceLimitExceeded:   fault.Throttled,
	"com.microsoft:server-busy":         fault.Throttled,
	"com.microsoft:timeout":             fault.Unavailable,
	"com.microsoft:operation-cancelled": fault.Unavailable,
	"com.microsoft:entity-disabled":     fault.Denied,
	"com.microsoft:message-lock-lost":   fault.LeaseLost,
}

// codes are those of the client library.
var codes = map[azservicebus.Code]fault.Code{
	azservicebus.CodeUnauthorizedAccess: fault.Denied,
	azservicebus.CodeConnectionLost:     fault.Unavailable,
	azservicebus.CodeClosed:             fault.Unavailable,
	azservicebus.CodeLockLost:           fault.LeaseLost,
	azservicebus.CodeTimeout:            fault.Unavailable,
	azservicebus.CodeNotFound:           fault.NotFound,
}

func codeOf(err error) fault.Code {
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		if code, known := conditions[e.Condition]; known {
			return code
		}
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		if code, known := codes[e.Code]; known {
			return code
		}
	}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return fault.TooLarge
	}
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return statusCode(e.StatusCode)
	}
	// The answer of a management node; its type is not exported.
	var answer interface{ RPCCode() int }
	if errors.As(err, &answer) {
		return statusCode(answer.RPCCode())
	}
	if final(err) {
		return fault.Denied
	}
	if lost(err) {
		return fault.Unavailable
	}
	return fault.Internal
}

// lost reports an error of the connection itself.
func lost(err error) bool {
	// That a time is up is a net.Error too.
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*amqp.ConnError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*amqp.SessionError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*amqp.LinkError](err); ok {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}

// broken reports that the connection, or the link that the client keeps using,
// is of no more use. Without its repeats the client never replaces them.
func broken(err error) bool {
	e, ok := errors.AsType[*azservicebus.Error](err)
	return ok && (e.Code == azservicebus.CodeConnectionLost || e.Code == azservicebus.CodeClosed) || lost(err)
}

func statusCode(status int) fault.Code {
	switch status {
	case http.StatusBadRequest:
		return fault.Invalid
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.Denied
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict:
		return fault.Exists
	case http.StatusGone:
		return fault.LeaseLost
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return fault.Throttled
	case http.StatusRequestTimeout:
		return fault.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return fault.Unavailable
	}
	return fault.Internal
}
