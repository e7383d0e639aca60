package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Error is an error with a code. Build it with New, Newf or Wrap.
type Error struct {
	code       Code
	text       string
	cause      error
	remedy     string
	retryAfter time.Duration
}

// New returns an error of code with a sentence for people.
func New(code Code, text string) *Error { return &Error{code: code, text: text} }

// Newf is New with a format. It does not wrap: use Wrap for a cause.
func Newf(code Code, format string, args ...any) *Error {
	return &Error{code: code, text: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of code whose sentence is text and whose cause is err.
func Wrap(code Code, err error, text string) *Error {
	return &Error{code: code, text: text, cause: err}
}

// Wrapf is Wrap with a format.
func Wrapf(code Code, err error, format string, args ...any) *Error {
	return &Error{code: code, text: fmt.Sprintf(format, args...), cause: err}
}

// Error returns the sentence, then the cause if there is one.
func (e *Error) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Code returns the code that e was built with.
func (e *Error) Code() Code { return e.code }

// WithRemedy returns e with its own advice instead of the one of its code.
func (e *Error) WithRemedy(remedy string) *Error {
	c := *e
	c.remedy = remedy
	return &c
}

// WithRetryAfter returns e with the pause that the service asked for.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.retryAfter = d
	return &c
}

// CodeOf returns the code of the outermost Error in err's tree. Context errors
// count as Canceled; any other error is Internal. CodeOf(nil) is Internal too:
// ask only about errors.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.code
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Canceled
	}
	return Internal
}

// Is reports whether err is an error of code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// RemedyOf returns the advice for err: its own where it has one, else that of
// its code.
func RemedyOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.remedy != "" {
		return e.remedy
	}
	return CodeOf(err).Remedy()
}

// RetryAfter returns the pause that the service asked for, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.retryAfter
	}
	return 0
}
