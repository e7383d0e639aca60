package azurite

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// Shared is the one server of a test package. The zero value is ready to use;
// TestMain calls Close after the tests. Safe for concurrent use.
type Shared struct {
	// Dir, where set, is an empty directory for the data, which is in memory
	// otherwise. Set it before the first use.
	Dir string

	once   sync.Once
	server *Server
	err    error
}

// Server returns the running server, starting it for the first caller. Without
// node or npm the test is skipped, but where CI is set it fails.
func (s *Shared) Server(tb testing.TB) *Server {
	tb.Helper()
	s.once.Do(func() { s.server, s.err = start(context.WithoutCancel(tb.Context()), s.Dir) })
	switch {
	case errors.Is(s.err, errMissing) && os.Getenv("CI") == "":
		tb.Skipf("azurite cannot run here: %v; scripts/setup installs what is missing", s.err)
	case s.err != nil:
		tb.Fatalf("azurite does not run: %v", s.err)
	}
	return s.server
}

// Account returns the connection string of a fresh account of the server.
func (s *Shared) Account(tb testing.TB) string {
	tb.Helper()
	text, err := s.Server(tb).Account()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// Close ends the server if it was started.
func (s *Shared) Close() {
	if s.server != nil {
		s.server.stop()
	}
}
