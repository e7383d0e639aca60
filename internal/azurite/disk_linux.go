package azurite

import (
	"golang.org/x/sys/unix"
)

// FillDisk makes every write to the server's data fail, as on a full disk, until
// FreeDisk. The server keeps answering. It needs Shared.Dir.
//
// A bound of the kernel on the size of its files does it, which needs no rights
// and touches no file.
func (s *Server) FillDisk() error { return s.limitFiles(0) }

// FreeDisk ends FillDisk.
func (s *Server) FreeDisk() error { return s.limitFiles(unix.RLIM_INFINITY) }

// limitFiles changes the soft limit alone: that can be taken back.
func (s *Server) limitFiles(size uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(s.process.Pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return unix.Prlimit(s.process.Pid, unix.RLIMIT_FSIZE, &limit, nil)
}
