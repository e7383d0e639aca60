package azstorage_test

import (
	"context"
	"testing"
	"time"
)

// cleanupContext is for calls after the test, whose own context has ended.
func cleanupContext(tb testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Second)
}
