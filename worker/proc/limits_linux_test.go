package proc

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

func TestCgroupsBoundTheProcesses(t *testing.T) {
	t.Parallel()
	const (
		unified = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
		pids    = "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:1 - cgroup cgroup rw,pids\n"
		memory  = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		inside  = "39 31 0:36 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
	)
	for name, tc := range map[string]struct {
		cgroup, mounts string
		// limits are pids.max and pids.current by directory.
		limits map[string]string
		want   []uint64
	}{
		"version 2, each level":         {"0::/user/session\n", unified, map[string]string{"/user/session": "100 40", "/user": "90 50", "": "max 7"}, []uint64{60, 40}},
		"version 1":                     {"8:pids:/job\n4:memory:/m\n0::/\n", memory + pids, map[string]string{"/pids/job": "64 4", "/memory/job": "1 1", "/memory/m": "1 1"}, []uint64{60}},
		"a container sees its own":      {"8:pids:/docker/abc\n", inside, map[string]string{"/pids": "64 4"}, []uint64{60}},
		"a container within one":        {"8:pids:/docker/abc/in\n", inside, map[string]string{"/pids/in": "8 4", "/pids": "64 4"}, []uint64{4, 60}},
		"a container of other names":    {"8:pids:/kube/abc\n", inside, map[string]string{"/pids": "64 4"}, []uint64{60}},
		"a name that begins the same":   {"8:pids:/docker/abcd\n", inside, map[string]string{"/pids": "64 4", "/pids/d": "1 1"}, []uint64{60}},
		"more than the limit":           {"0::/\n", unified, map[string]string{"": "5 9"}, []uint64{0}},
		"no limit":                      {"0::/\n", unified, map[string]string{"": "max 9"}, nil},
		"no cgroups":                    {"", "", nil, nil},
		"lines that nobody understands": {"pids\n::\n", "a b\n - c\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{
				"proc/self/cgroup":    {Data: []byte(tc.cgroup)},
				"proc/self/mountinfo": {Data: []byte(tc.mounts)},
			}
			for dir, values := range tc.limits {
				limit, used, _ := strings.Cut(values, " ")
				root["sys/fs/cgroup"+dir+"/pids.max"] = &fstest.MapFile{Data: []byte(limit + "\n")}
				root["sys/fs/cgroup"+dir+"/pids.current"] = &fstest.MapFile{Data: []byte(used + "\n")}
			}
			var got []uint64
			for _, r := range cgroupRooms(root) {
				got = append(got, r.free)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("room = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCgroupsUpToTheirMountPoint(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mounted, point, cgroup string
		want                   []string
	}{
		{"/", "/", "/a/b", []string{"a/b", "a", ""}},
		{"/", "/", "/", []string{""}},
		{"/", "/sys/fs/cgroup", "/a", []string{"sys/fs/cgroup/a", "sys/fs/cgroup"}},
		{"/in", "/cg/", "/in", []string{"cg"}},
	} {
		if got := upward(tc.mounted, tc.point, tc.cgroup); !slices.Equal(got, tc.want) {
			t.Errorf("upward(%q, %q, %q) = %q, want %q", tc.mounted, tc.point, tc.cgroup, got, tc.want)
		}
	}
}

// TestTheLimitOfAUserBoundsTheProcesses asks in a process of a user whom it binds.
func TestTheLimitOfAUserBoundsTheProcesses(t *testing.T) {
	t.Parallel()
	const limitEnv = "JOBQ_TEST_PROCESSES"
	if text := os.Getenv(limitEnv); text != "" {
		extra, _ := strconv.ParseUint(text, 10, 64)
		used := threadsOf(os.Getuid())
		limit := unix.Rlimit{Cur: used + extra, Max: used + extra}
		err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
		if errors.Is(err, unix.EPERM) {
			t.Skip("the hard limit of this user is lower than the test needs")
		}
		if err != nil {
			t.Fatal(err)
		}
		r, bound := userRoom()
		if used == 0 || !bound || r.free+extra/2 < extra || r.free > extra+extra/2 || !strings.Contains(r.limit.Raise, "ulimit -u") {
			t.Errorf("room = %+v, %t with %d threads; want about %d", r, bound, used, extra)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), limitEnv+"="+"1000", "TMPDIR=/")
	if os.Geteuid() == 0 {
		// A number that nobody else uses: the threads of others come and go.
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	}
	out, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skipf("%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
