package azstorage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"jobq/core/fault"
)

// verdicts says what a status means for one operation where that differs from
// the general meaning.
type verdicts map[int]fault.Code

// Meanings of refused conditions. C20 of the cases: which status and which code
// the service chooses for one conflict differs from version to version.
var (
	onCreate = verdicts{http.StatusConflict: fault.Exists, http.StatusPreconditionFailed: fault.Exists}
	onChange = verdicts{http.StatusNotFound: fault.Conflict, http.StatusConflict: fault.Conflict, http.StatusPreconditionFailed: fault.Conflict}
)

// classify gives the error of a call its code. doing completes "cannot ...".
func classify(ctx context.Context, err error, special verdicts, doing string) *fault.Error {
	if ctx.Err() != nil {
		return fault.Wrapf(fault.Canceled, context.Cause(ctx), "cannot %s: the call was stopped", doing)
	}
	e, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return noAnswer(err, doing)
	}
	f := fault.Wrapf(meaning(e, special), answer{e.StatusCode, e.ErrorCode, requestID(e)}, "cannot %s", doing)
	switch {
	case f.Code() == fault.Denied:
		f = f.WithRemedy("check the sign-in, and that the identity has the data roles (Storage Blob, Queue and Table Data Contributor) on the account")
	case e.StatusCode >= http.StatusInternalServerError:
		f = f.WithRemedy("the service has trouble of its own: try again later; if it lasts, look at the health of the account, or at the output and the disk of the emulator")
	}
	if pause := retryAfter(e); pause > 0 {
		f = f.WithRetryAfter(pause)
	}
	return f
}

// meaning returns the code of an answer.
func meaning(e *azcore.ResponseError, special verdicts) fault.Code {
	if placeGone(e.ErrorCode) {
		return fault.Unavailable
	}
	if code, ok := special[e.StatusCode]; ok {
		return code
	}
	if e.ErrorCode == "MessageTooLarge" {
		// With 400 or 413.
		return fault.TooLarge
	}
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.Denied
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return fault.Conflict
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusTooManyRequests:
		return fault.Throttled
	case http.StatusServiceUnavailable:
		// Only the service itself says that it did nothing; a gateway that says
		// 503 may have passed the call on.
		if e.ErrorCode == "ServerBusy" {
			return fault.Throttled
		}
		return fault.Unavailable
	case http.StatusRequestTimeout:
		return fault.Unavailable
	}
	if e.StatusCode >= 500 {
		return fault.Unavailable
	}
	return fault.Internal
}

// placeGone reports whether a code says that not a thing but the place that
// holds it is absent or out of use.
func placeGone(code string) bool {
	switch code {
	case "ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled", "TableNotFound", "TableBeingDeleted",
		"QueueBeingDeleted", "QueueDisabled", "AccountBeingCreated", "AccountIsDisabled":
		return true
	}
	return false
}

// noAnswer is the error of a call that got no answer: whether the service did
// what it was asked is unknown. A sign-in that fails counts as one, since what
// gives out tokens may be out of reach itself.
func noAnswer(err error, doing string) *fault.Error {
	if e, ok := errors.AsType[interface {
		error
		NonRetriable()
	}](err); ok {
		return fault.Wrapf(fault.Unavailable, e, "cannot %s: no sign-in works", doing).
			WithRemedy("sign in (`az login`), or give the machine a managed identity with the data roles on the account")
	}
	// The text of a url.Error has the whole address, signature included.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fault.Wrapf(fault.Unavailable, err, "cannot %s: no answer", doing)
}

// answer is what people may see of a refusal; the SDK's own text has the
// address and the whole body.
type answer struct {
	status  int
	code    string
	request string
}

func (a answer) Error() string {
	text := fmt.Sprintf("the service answered %d", a.status)
	if a.code != "" {
		text += " " + a.code
	}
	if a.request != "" {
		text += " (request " + a.request + ")"
	}
	return text
}

func requestID(e *azcore.ResponseError) string {
	if e.RawResponse == nil {
		return ""
	}
	return e.RawResponse.Header.Get("x-ms-request-id")
}

// retryAfter returns the pause that the service asked for, at most an hour.
func retryAfter(e *azcore.ResponseError) time.Duration {
	if e.RawResponse == nil {
		return 0
	}
	seconds, err := strconv.Atoi(e.RawResponse.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// status returns the HTTP status and the service's code of err, 0 for no answer.
func status(err error) (int, string) {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return e.StatusCode, e.ErrorCode
	}
	return 0, ""
}

func tooLarge(what string, size, limit int) error {
	return fault.Newf(fault.TooLarge, "%s has %d bytes, the limit is %d", what, size, limit)
}

// ended returns the error of a call whose context ended before it began.
func ended(ctx context.Context, doing string) error {
	if ctx.Err() == nil {
		return nil
	}
	return fault.Wrapf(fault.Canceled, context.Cause(ctx), "cannot %s: the call was stopped", doing)
}
