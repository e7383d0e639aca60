package proc

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// table reads the process table. One buffer serves all its reads; a table is
// for one goroutine. The files are read by bare system calls because a scan
// opens one for every process of the machine.
type table struct {
	dir *os.File
	buf []byte
}

// openTable opens the process table, or returns nil on a machine without one.
func openTable() *table {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	return &table{dir: dir, buf: make([]byte, 8<<10)}
}

func (t *table) close() { _ = t.dir.Close() }

// pids returns the processes of this moment.
func (t *table) pids() []int {
	names, _ := t.dir.Readdirnames(-1) // a broken listing is a shorter one
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// read returns the content of a file of process pid, valid until the next read.
// A process that is gone, or that we may not look into, reads as empty.
func (t *table) read(pid int, file string) []byte {
	content, _ := t.open(pid, file)
	return content
}

// open is read that also reports whether the file could be opened.
func (t *table) open(pid int, file string) (content []byte, opened bool) {
	fd, err := unix.Openat(int(t.dir.Fd()), strconv.Itoa(pid)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer func() { _ = unix.Close(fd) }()
	for filled := 0; ; {
		n, err := unix.Read(fd, t.buf[filled:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return t.buf[:filled], true
		}
		if filled += n; filled == len(t.buf) {
			t.buf = slices.Grow(t.buf, len(t.buf))[:2*len(t.buf)]
		}
	}
}

// status is what we need of /proc/PID/stat.
type status struct {
	pgid int
	// alive is false for zombies, which only wait to be reaped.
	alive bool
	// bare is a process that has no environment to show: a part of the kernel,
	// one on its way out, or a program that was given none.
	bare bool
}

// status reads the state of pid; a process that is gone is not alive.
func (t *table) status(pid int) status { return parseStat(t.read(pid, "stat")) }

// parseStat reads the fields behind the program's name, which is in
// parentheses and may contain anything. A leader whose first thread has ended
// looks like a zombie while its other threads still run; a true zombie has at
// most one left.
func parseStat(line []byte) status {
	const (
		state       = 0
		group       = 2
		flags       = 6
		threads     = 17
		envStart    = 47
		envEnd      = 48
		flagExiting = 0x4
		flagKernel  = 0x200000
	)
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) <= envEnd {
		return status{bare: true}
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i])) // the kernel writes numbers; one that is too large for us is none of ours
		return n
	}
	s := status{pgid: number(group), alive: true}
	if c := fields[state][0]; c == 'Z' || c == 'X' || c == 'x' {
		s.alive = number(threads) > 1
	}
	// A program that takes the place of another (execve) has no bounds yet.
	given := !bytes.Equal(fields[envStart], fields[envEnd]) || string(fields[envEnd]) == "0"
	s.bare = !s.alive || number(flags)&(flagExiting|flagKernel) != 0 || !given
	return s
}

// GroupAlive reports whether a process of the group pgid is alive. Zombies are
// not: in a container whose first process reaps nothing they stay for ever.
func GroupAlive(pgid int) bool {
	// One system call answers for nearly every group; the table is read only
	// while something is left of it, be it a zombie.
	if pgid <= 1 || errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
		return false
	}
	t := openTable()
	if t == nil {
		return true
	}
	defer t.close()
	return slices.ContainsFunc(t.pids(), func(pid int) bool {
		s := t.status(pid)
		return s.alive && s.pgid == pgid
	})
}

// pidAlive reports whether a process is alive, zombies not counted.
func pidAlive(pid int) bool {
	t := openTable()
	if t == nil {
		return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	defer t.close()
	return t.status(pid).alive
}

// FindByRunID returns the processes of this machine whose environment, as it
// was when their program was started, has RunIDVariable equal to one of
// runIDs; never this process. It sees what left its group and session, but not
// a program that was started with an emptied environment, nor processes that
// this user may not look into. One look costs about 5 µs a process.
func FindByRunID(runIDs ...string) []int {
	found, _ := look(runIDs)
	return found
}

// look is FindByRunID that also reports whether it saw every environment. A
// process shows none while one program takes the place of another in it, and
// was missed then.
func look(runIDs []string) (found []int, settled bool) {
	t := openTable()
	if t == nil {
		return nil, true
	}
	defer t.close()
	wanted := make(map[string]bool, len(runIDs))
	for _, id := range runIDs {
		wanted[id] = id != ""
	}
	self := os.Getpid()
	settled = true
	for _, pid := range t.pids() {
		if pid == self {
			continue
		}
		block, readable := t.open(pid, "environ")
		switch {
		case hasRunID(block, wanted):
			found = append(found, pid)
		case readable && len(block) == 0 && !t.status(pid).bare:
			settled = false // even if it would show one by now
		}
	}
	return found, settled
}

var runIDEntry = []byte(RunIDVariable + "=")

// hasRunID reports whether an environment block names one of the wanted run ids.
func hasRunID(block []byte, wanted map[string]bool) bool {
	for at := 0; ; {
		i := bytes.Index(block[at:], runIDEntry)
		if i < 0 {
			return false
		}
		begin := at + i
		at = begin + len(runIDEntry)
		if begin > 0 && block[begin-1] != 0 {
			continue // the tail of another variable's name or value
		}
		value, _, _ := bytes.Cut(block[at:], []byte{0})
		if wanted[string(value)] {
			return true
		}
	}
}

// killWithGroup kills pid and the group that it is in now, unless that is ours.
func killWithGroup(pid int) {
	if pgid, err := syscall.Getpgid(pid); err == nil && pgid != syscall.Getpgrp() {
		killGroup(pgid)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone, or not ours: the caller looks again
}
