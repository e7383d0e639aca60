//go:build unix

package azurite

import "syscall"

// Pause makes the server deaf: connections are taken and nothing is answered,
// as with a service that cannot be reached. Resume ends that.
func (s *Server) Pause() error { return s.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.process.Signal(syscall.SIGCONT) }
