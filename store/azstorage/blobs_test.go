package azstorage_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/azstorage"
)

// blockLimit refuses as the service does when an append blob has its blocks,
// but after a few instead of 50,000.
func blockLimit(most int) func(*http.Request) (*http.Response, error) {
	var mu sync.Mutex
	blocks := map[string]int{}
	return func(r *http.Request) (*http.Response, error) {
		if !isPut(r) || r.URL.Query().Get("comp") != "appendblock" {
			return nil, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if blocks[r.URL.Path]++; blocks[r.URL.Path] > most {
			return answer{status: 409, code: "BlockCountExceedsLimit"}.to(r)
		}
		return nil, nil
	}
}

func TestAFullLogRollsOverForEveryWriter(t *testing.T) {
	t.Parallel()
	a, ctx := newAccount(t), t.Context()
	way := newNetwork()
	way.set(blockLimit(4), nil)
	o := a.options()
	o.Transport = &http.Client{Transport: way}
	stores := []*port.Store{a.open(o), a.open(o), a.open(o)}
	const lines = 30
	var wg sync.WaitGroup
	for n, s := range stores {
		wg.Go(func() {
			for i := range lines / len(stores) {
				if err := s.TaskLogs.Append(ctx, "logs/w/a/1.1", fmt.Appendf(nil, "%d.%02d\n", n, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// One that comes later, and one whose memory is of a log that was deleted.
	if err := a.open(o).TaskLogs.Append(ctx, "logs/w/a/1.1", []byte("last\n")); err != nil {
		t.Fatal(err)
	}
	size, err := stores[0].TaskLogs.Size(ctx, "logs/w/a/1.1")
	if err != nil || size != lines*5+5 {
		t.Errorf("Size = %d, error %v, want %d", size, err, lines*5+5)
	}
	var all []byte
	for len(all) < int(size) {
		part, err := stores[1].TaskLogs.Read(ctx, "logs/w/a/1.1", int64(len(all)), 7)
		if err != nil || len(part) == 0 {
			t.Fatalf("Read at %d = %d bytes, error %v", len(all), len(part), err)
		}
		all = append(all, part...)
	}
	if !bytes.HasSuffix(all, []byte("last\n")) {
		t.Errorf("the last append is not at the end of %q", all)
	}
	seen := map[byte]string{}
	for line := range strings.Lines(string(all)) {
		if line != "last\n" && line <= seen[line[0]] {
			t.Errorf("line %q of a writer comes after %q", line, seen[line[0]])
		}
		seen[line[0]] = line
	}
	names := slices.Collect(func(yield func(string) bool) {
		for name, err := range stores[2].TaskLogs.Names(ctx, "logs/w/") {
			if err != nil || !yield(name) {
				return
			}
		}
	})
	if !cmp.Equal(names, []string{"logs/w/a/1.1"}) {
		t.Errorf("Names = %q, want the one stream", names)
	}
	if err := a.open(o).TaskLogs.DeletePrefix(ctx, "logs/w/", nil); err != nil {
		t.Fatal(err)
	}
	way.heal()
	if err := stores[0].TaskLogs.Append(ctx, "logs/w/a/1.1", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := stores[1].TaskLogs.Read(ctx, "logs/w/a/1.1", 0, 100); string(got) != "new" || err != nil {
		t.Errorf("Read after the deletion = %q, error %v, want new", got, err)
	}
}

func TestALargeAppendIsOnePiece(t *testing.T) {
	t.Parallel()
	a, ctx := newAccount(t), t.Context()
	s := a.open(a.options())
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	if err := s.TaskLogs.Append(ctx, "l", large); err != nil {
		t.Fatal(err)
	}
	if err := s.TaskLogs.Append(ctx, "l", make([]byte, 101<<20)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("Append of 101 MiB = error %v, want too large", err)
	}
	got, err := s.TaskLogs.Read(ctx, "l", 0, len(large)+1)
	if err != nil || !bytes.Equal(got, large) {
		t.Errorf("Read = %d bytes, error %v, want the %d appended", len(got), err, len(large))
	}
}

func TestDeletingEventsLeavesTheStatesBesideThem(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	if err := i.store.Events.Append(ctx, "w.events/log", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := i.store.Events.DeletePrefix(ctx, "", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := i.store.States.Load(ctx, "w", ""); err != nil {
		t.Errorf("Load after the events were deleted = error %v", err)
	}
	if n, err := i.store.Events.Size(ctx, "w.events/log"); n != 0 || err != nil {
		t.Errorf("Size = %d, error %v, want none", n, err)
	}
}

// C33 where the driver is concerned: with a container of their own, outputs of
// every size go there, and those from before are still found.
func TestOutputsMoveToTheirOwnContainer(t *testing.T) {
	t.Parallel()
	a, there, ctx := newAccount(t), newAccount(t), t.Context()
	before := a.open(a.options())
	if before.Props.FileOutputs {
		t.Error("task files are said to be possible without a container for them")
	}
	old := msg.CanonicalOutput("w", "old")
	if err := before.Outputs.Put(ctx, old, []byte("1")); err != nil {
		t.Fatal(err)
	}
	o := a.options()
	o.Blobs, o.Container = &there.account, "my-outputs"
	s := a.open(o)
	if !s.Props.FileOutputs {
		t.Error("task files are said to be impossible with a container for them")
	}
	for _, size := range []int{32_767, 32_768, 32_769, 500 << 10, 600 << 10} {
		name := msg.CanonicalOutput("w", fmt.Sprint(size))
		body := bytes.Repeat([]byte("x"), size)
		if err := s.Outputs.Put(ctx, name, body); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Outputs.Get(ctx, name); err != nil || !bytes.Equal(got, body) {
			t.Errorf("Get of %d bytes = %d bytes, error %v", size, len(got), err)
		}
		if _, err := before.Outputs.Get(ctx, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("the container of the prefix has the output of %d bytes: error %v", size, err)
		}
	}
	if got, err := s.Outputs.Get(ctx, old); string(got) != "1" || err != nil {
		t.Errorf("Get of an output from before = %q, error %v", got, err)
	}
	n := 0
	for _, err := range s.Outputs.List(ctx, "w/") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 6 {
		t.Errorf("List gave %d names, want 6", n)
	}
	if err := s.Outputs.DeletePrefix(ctx, "w/", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Outputs.Get(ctx, old); !fault.Is(err, fault.NotFound) {
		t.Errorf("Get after DeletePrefix = error %v, want not found", err)
	}
}

func TestMembersThatFellSilentAreLeftOutAndRemoved(t *testing.T) {
	t.Parallel()
	a, ctx := newAccount(t), t.Context()
	s := a.open(a.options())
	if _, err := s.Presence.Join(ctx, port.Member{Host: "h", PID: 7}); err != nil {
		t.Fatal(err)
	}
	tomorrow := azstorage.PresenceLater(s, 25*time.Hour)
	if members, err := tomorrow.Members(ctx); err != nil || len(members) != 0 {
		t.Errorf("Members a day later = %v, error %v, want none", members, err)
	}
	if members, err := s.Presence.Members(ctx); err != nil || len(members) != 1 || !strings.HasPrefix(members[0].ID, "h-7-") {
		t.Errorf("Members now = %v, error %v, want the one", members, err)
	}
	if _, err := tomorrow.Join(ctx, port.Member{Host: "other"}); err != nil {
		t.Fatal(err)
	}
	members, err := s.Presence.Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.PID == 7 {
			t.Errorf("%s is still there after another process joined a day later", m.ID)
		}
	}
}

// Processes leave at any time, also between a listing and the look at each.
func TestAMemberThatLeavesWhileItIsListedIsLeftOut(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	gone, err := i.open(i.options()).Presence.Join(ctx, port.Member{Host: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	stays, err := i.store.Presence.Join(ctx, port.Member{Host: "stays"})
	if err != nil {
		t.Fatal(err)
	}
	i.way.set(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, gone.ID()) {
			return nil, nil
		}
		return nil, gone.Leave(ctx)
	}, nil)
	members, err := i.store.Presence.Members(ctx)
	if err != nil || len(members) != 1 || members[0].ID != stays.ID() {
		t.Errorf("Members = %v, error %v, want the one that stays", members, err)
	}
}

// A coordinator of ai4s-jobq holds the lock by a lease of the service itself.
func TestALockHeldByALeaseOfTheServiceIsTaken(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	const name = "_coordinator.lock"
	if err := i.store.Leases.Acquire(ctx, name, "me", time.Minute); err != nil {
		t.Fatal(err)
	}
	client, err := lease.NewBlobClient(i.blobs(t).NewContainerClient("demo-workflows").NewBlobClient(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AcquireLease(ctx, 60, nil); err != nil {
		t.Fatal(err)
	}
	if err := i.store.Leases.Acquire(ctx, name, "me", time.Minute); !fault.Is(err, fault.Conflict) {
		t.Errorf("Acquire of a lock under a lease of the service = error %v, want a conflict", err)
	}
	if err := i.store.Leases.Release(ctx, name, "me"); err != nil {
		t.Errorf("Release = error %v, want none", err)
	}
	if _, err := client.ReleaseLease(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := i.store.Leases.Acquire(ctx, name, "me", time.Minute); err != nil {
		t.Errorf("Acquire afterwards = error %v", err)
	}
}
