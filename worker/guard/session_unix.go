//go:build unix

package guard

import "syscall"

// sessionAttr puts the guardian out of reach of what a terminal or a shell
// sends to the worker's group.
func sessionAttr() (*syscall.SysProcAttr, error) { return &syscall.SysProcAttr{Setsid: true}, nil }
