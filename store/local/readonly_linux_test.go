package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// asSomebody runs the calling test as a user whom rights bind. Where that is root
// it runs the test once more in a process of the user nobody, and returns false.
func asSomebody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	const nobody = 65534
	scratch, err := os.MkdirTemp("", "jobq-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	if err := os.Chown(scratch, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	// By this name the program can be started whatever directory it is in.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return false
}

// protect makes home unwritable until the end of the test and returns what it holds.
func protect(t *testing.T, home string) []string {
	t.Helper()
	names := list(t, home)
	set := func(dir, file os.FileMode) {
		for _, name := range append(names, home) {
			mode := file
			if info, err := os.Lstat(name); err == nil && info.IsDir() {
				mode = dir
			}
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(0o500, 0o400)
	t.Cleanup(func() { set(0o700, 0o600) })
	return names
}

func list(t *testing.T, home string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		if path != home {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestReadOnlyHomeIsDenied(t *testing.T) {
	t.Parallel()
	if !asSomebody(t) {
		return
	}
	home := t.TempDir()
	protect(t, home)
	refusesToOpen(t, home, fault.Denied, home)
	if _, err := Open(t.Context(), Options{Home: home, Prefix: "main", LookOnly: true}); !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), home) {
		t.Errorf("Open to look at nothing = error %v, want denied with the home", err)
	}
}

// TestAReadOnlyHomeCanBeLookedAt: everything can be read, nothing be changed, and
// nothing is left in the home.
func TestAReadOnlyHomeCanBeLookedAt(t *testing.T) {
	t.Parallel()
	if !asSomebody(t) {
		return
	}
	ctx, home := t.Context(), t.TempDir()
	s, err := Open(ctx, Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Port().States.Create(ctx, "w", []byte("state")); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("x"), 1<<20)
	for name, body := range map[string][]byte{"w/small": []byte("1"), "w/large": large} {
		if err := s.Port().Outputs.Put(ctx, name, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Port().TaskLogs.Append(ctx, "w/a/1.1", []byte("said")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := protect(t, home)

	refusesToOpen(t, home, fault.Denied, home)
	s, err = Open(ctx, Options{Home: home, Prefix: "main", LookOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	look := s.Port()
	if got, err := look.States.Load(ctx, "w", ""); err != nil || string(got.Body) != "state" {
		t.Errorf("Load = %q, error %v", got.Body, err)
	}
	if got, err := look.Outputs.Get(ctx, "w/small"); err != nil || string(got) != "1" {
		t.Errorf("Get of the small output = %q, error %v", got, err)
	}
	if got, err := look.Outputs.Get(ctx, "w/large"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("Get of the large output = %d bytes, error %v", len(got), err)
	}
	if got, err := look.TaskLogs.Read(ctx, "w/a/1.1", 0, 100); err != nil || string(got) != "said" {
		t.Errorf("Read of the log = %q, error %v", got, err)
	}
	if members, err := look.Presence.Members(ctx); err != nil || len(members) != 0 {
		t.Errorf("Members = %v, error %v, want none", members, err)
	}
	for name, err := range map[string]error{
		"Create": second(look.States.Create(ctx, "v", nil)),
		"Put":    look.Outputs.Put(ctx, "w/more", large),
		"Append": look.TaskLogs.Append(ctx, "w/a/1.1", []byte("more")),
		"Send":   look.Queues.Queue("cpu").Send(ctx, []port.Message{{ID: "1", Body: []byte("1")}})[0],
		"Lease":  look.Leases.Acquire(ctx, "lock", "me", time.Hour),
		"Join":   second(look.Presence.Join(ctx, port.Member{Kind: "worker"})),
		"Delete": look.Outputs.DeletePrefix(ctx, "w/", nil),
	} {
		if !fault.Is(err, fault.Denied) {
			t.Errorf("%s = error %v, want denied", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = error %v", err)
	}
	if after := list(t, home); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the home holds %q after the look, before it %q", after, before)
	}
}

// TestAnOlderHomeThatIsReadOnlyCanBeLookedAt, unless it is older than what is read.
func TestAnOlderHomeThatIsReadOnlyCanBeLookedAt(t *testing.T) {
	t.Parallel()
	if !asSomebody(t) {
		return
	}
	for version, can := range map[int]bool{0: false, oldestToLook: true} {
		ctx, home := t.Context(), t.TempDir()
		db := oldDatabase(t, home)
		if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO queue (name) VALUES ('cpu'); PRAGMA user_version = %d", version)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		protect(t, home)
		s, err := Open(ctx, Options{Home: home, Prefix: "main", LookOnly: true})
		if !can {
			if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "older jobq") {
				t.Errorf("Open of version %d = %v, want it denied", version, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		q := s.Port().Queues.Queue("cpu")
		if n, err := q.Count(ctx); err != nil || n != 0 {
			t.Errorf("Count = %d, %v", n, err)
		}
		if _, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: time.Minute}); !fault.Is(err, fault.Denied) {
			t.Errorf("Receive = %v, want denied", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
