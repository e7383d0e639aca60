package proc

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processRooms returns the limits on processes and threads that are known. A machine
// without any left kills a Go program that needs a thread.
func processRooms() []room {
	rooms := cgroupRooms(os.DirFS("/"))
	if r, ok := userRoom(); ok {
		rooms = append(rooms, r)
	}
	return rooms
}

// userRoom is what RLIMIT_NPROC leaves to this user. It does not bind root. The kernel may
// count threads too that /proc does not show, those of the same number in containers and
// outside of this one: then there is less room than this.
func userRoom() (room, bool) {
	var limit unix.Rlimit
	uid := os.Getuid()
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY || uid == 0 {
		return room{}, false
	}
	return room{less(limit.Cur, threadsOf(uid)), Limit{On: "processes than this user may have", Raise: "raise `ulimit -u`"}}, true
}

func less(limit, used uint64) uint64 { return limit - min(limit, used) }

// threadsOf counts the threads of the user, as far as the process table shows them.
func threadsOf(uid int) uint64 {
	t := openTable()
	if t == nil {
		return 0
	}
	defer t.close()
	var sum uint64
	for _, pid := range t.pids() {
		status := t.read(pid, "status")
		if number(status, "Uid:") == uint64(uid) {
			sum += number(status, "Threads:")
		}
	}
	return sum
}

// number returns the first number of the line of status that begins with key, 0 where
// there is none.
func number(status []byte, key string) uint64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseUint(string(fields[0]), 10, 64)
				return n
			}
		}
	}
	return 0
}

// cgroupRooms returns what the cgroup of this process and those around it leave. A
// cgroup without a limit, or that cannot be read, leaves out its own.
func cgroupRooms(root fs.FS) []room {
	var rooms []room
	for _, dir := range cgroupDirs(root) {
		limit, limited := readNumber(root, path.Join(dir, "pids.max"))
		used, known := readNumber(root, path.Join(dir, "pids.current"))
		if limited && known {
			rooms = append(rooms, room{less(limit, used), Limit{On: "processes than its cgroup may have", Raise: "raise " + path.Join("/", dir, "pids.max")}})
		}
	}
	return rooms
}

// readNumber reads a file that holds one number; it may also say "max".
func readNumber(root fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// cgroupDirs returns the directories of the cgroups that count the processes of this
// one, of both versions, the innermost first.
func cgroupDirs(root fs.FS) []string {
	one, two := cgroupPaths(root)
	mounts, err := root.Open("proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer mounts.Close()
	var dirs []string
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		// ID parent device root mountpoint options [tags] - type source options
		before, after, _ := strings.Cut(lines.Text(), " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if len(at) < 5 || len(kind) < 3 {
			continue
		}
		switch {
		case kind[0] == "cgroup2" && two != "":
			dirs = append(dirs, upward(at[3], at[4], two)...)
		case kind[0] == "cgroup" && one != "" && slices.Contains(strings.Split(kind[2], ","), "pids"):
			dirs = append(dirs, upward(at[3], at[4], one)...)
		}
	}
	return dirs
}

// cgroupPaths returns the cgroups of this process that count processes, by the version
// of the hierarchy; empty where there is none.
func cgroupPaths(root fs.FS) (one, two string) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[0] == "0" && parts[1] == "":
			two = parts[2]
		case slices.Contains(strings.Split(parts[1], ","), "pids"):
			one = parts[2]
		}
	}
	return one, two
}

// upward returns the directories from that of cgroup up to the mount point, at which
// the cgroup mounted is to be found. In a container the path of a cgroup may be that of
// the machine outside: then the mount point is all that can be seen of it.
func upward(mounted, point, cgroup string) []string {
	below, inside := strings.CutPrefix(cgroup, strings.TrimSuffix(mounted, "/"))
	if !inside || below != "" && below[0] != '/' {
		below = "/"
	}
	point = path.Clean(point)
	var dirs []string
	for dir := path.Join(point, below); ; dir = path.Dir(dir) {
		dirs = append(dirs, strings.TrimPrefix(dir, "/"))
		if len(dir) <= len(point) {
			return dirs
		}
	}
}
