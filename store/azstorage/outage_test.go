package azstorage_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"jobq/core/fault"
	"jobq/core/port"
)

// installation is a store with something in it, on an account that somebody
// plays with.
type installation struct {
	account
	text  string
	way   *network
	store *port.Store
	tag   port.Tag
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	text := emulator.Account(t)
	i := &installation{account: account{t, parse(t, text)}, text: text, way: newNetwork()}
	o := i.options()
	o.Transport = &http.Client{Transport: i.way}
	i.store = i.open(o)
	var err error
	if i.tag, err = i.store.States.Create(t.Context(), "w", []byte("one")); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *installation) blobs(t *testing.T) *service.Client {
	t.Helper()
	c, err := service.NewClientFromConnectionString(i.text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAContainerThatIsDeletedIsAnOutageUntilItIsBack(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	blobs := i.blobs(t)
	for _, name := range []string{"demo-workflows", "demo-runs", "demo-outputs"} {
		if _, err := blobs.DeleteContainer(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := i.store
	for call, err := range map[string]error{
		"Load":       second(s.States.Load(ctx, "w", "")),
		"Load known": second(s.States.Load(ctx, "w", i.tag)),
		"Save":       second(s.States.Save(ctx, "w", []byte("two"), i.tag)),
		"Create":     second(s.States.Create(ctx, "w2", nil)),
		"Definition": second(s.States.Definition(ctx, "w")),
		"Delete":     s.States.DeleteDefinition(ctx, "w"),
		"Read":       second(s.Records.Read(ctx, key)),
		"Change":     second(s.Records.Change(ctx, key, port.Record{}, i.tag)),
		"Remove":     s.Records.Delete(ctx, key, i.tag),
		"DeleteAll":  s.Records.DeleteAll(ctx, "w", 9),
		"Get":        second(s.Outputs.Get(ctx, "w/a.json")),
		"Put":        s.Outputs.Put(ctx, "w/a.json", nil),
		"List":       lastError(s.Outputs.List(ctx, "w/")),
		"Append":     s.TaskLogs.Append(ctx, "w/a/1.1", []byte("x")),
		"Events":     s.Events.Append(ctx, "w", []byte("x")),
		"ReadLog":    second(s.TaskLogs.Read(ctx, "w/a/1.1", 0, 1)),
		"Names":      lastError(s.TaskLogs.Names(ctx, "w/")),
		"Acquire":    s.Leases.Acquire(ctx, "lock", "me", time.Minute),
		"Holder":     second(s.Leases.Holder(ctx, "lock")),
		"Join":       second(s.Presence.Join(ctx, port.Member{})),
		"Members":    second(s.Presence.Members(ctx)),
	} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s without its container = error %v (%v), want unavailable", call, err, fault.CodeOf(err))
		} else if !strings.Contains(err.Error(), "is missing in account") || !strings.Contains(err.Error(), `container "demo-`) {
			t.Errorf("%s without its container says %q, want it to name the container", call, err)
		}
	}
	// The messages and rows are elsewhere and go on.
	if _, err := s.Index.Project(ctx, running("w", 1), ""); err != nil {
		t.Errorf("Project = error %v", err)
	}
	i.open(i.options())
	if _, err := s.States.Load(ctx, "w", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("Load with the container back and empty = error %v, want not found", err)
	}
	if _, err := s.States.Save(ctx, "w", nil, i.tag); !fault.Is(err, fault.Conflict) {
		t.Errorf("Save with the container back and empty = error %v, want a conflict", err)
	}
	if err := s.TaskLogs.Append(ctx, "w/a/1.1", []byte("x")); err != nil {
		t.Errorf("Append with the container back = error %v", err)
	}
}

func TestATableThatIsDeletedIsAnOutageUntilItIsBack(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	s := i.store
	tag, err := s.Index.Project(ctx, running("w", 1), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.table(i.text).Delete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	_, _, listErr := s.Index.List(ctx, port.Filter{})
	for call, err := range map[string]error{
		"Get":            second(s.Index.Get(ctx, "w")),
		"Project":        second(s.Index.Project(ctx, running("w", 2), tag)),
		"Project first":  second(s.Index.Project(ctx, running("w2", 1), "")),
		"SetCancel":      second(s.Index.SetCancel(ctx, "w", port.CancelRequest{Requested: true}, tag)),
		"Delete":         s.Index.Delete(ctx, "w"),
		"List":           listErr,
		"PutDue":         s.Index.PutDue(ctx, port.Due{Key: "w", Workflow: "w"}),
		"DeleteDue":      s.Index.DeleteDue(ctx, "w", 0),
		"DueBefore":      second(s.Index.DueBefore(ctx, born, 1)),
		"CancelRequests": second(s.Index.CancelRequests(ctx, 1)),
	} {
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "table DemoWorkflowsIndex is missing") {
			t.Errorf("%s without the table = error %v (%v), want unavailable and the name", call, err, fault.CodeOf(err))
		}
	}
	if _, err := s.States.Save(ctx, "w", []byte("two"), i.tag); err != nil {
		t.Errorf("Save without the table = error %v", err)
	}
	i.open(i.options())
	if _, err := s.Index.Project(ctx, running("w", 2), tag); !fault.Is(err, fault.Conflict) {
		t.Errorf("Project at the tag of the table before = error %v, want a conflict", err)
	}
	if _, err := s.Index.Project(ctx, running("w", 2), ""); err != nil {
		t.Errorf("Project with the table back = error %v", err)
	}
	if got := listed(t, s, port.Filter{}); len(got) != 1 {
		t.Errorf("List with the table back = %v, want w", got)
	}
}

func TestAnUnreachableAccountIsAnOutageUntilItIsBack(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	q := i.cpu(i.store)
	i.way.set(unreachable, nil)
	for call, err := range map[string]error{
		"Load": second(i.store.States.Load(ctx, "w", "")), "Save": second(i.store.States.Save(ctx, "w", nil, i.tag)),
		"Row": second(i.store.Index.Get(ctx, "w")), "Send": sendOne(t, q, "x"), "Count": second(q.Count(ctx)), "Ensure": i.store.Queues.Ensure(ctx, "cpu"),
	} {
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%s of an unreachable account = error %v, want unavailable", call, err)
		}
	}
	i.way.heal()
	doc, err := i.store.States.Load(ctx, "w", i.tag)
	if err != nil || !doc.Unchanged {
		t.Errorf("Load with the account back = %+v, error %v, want unchanged", doc, err)
	}
}

func TestALostAnswerOfASaveIsSeenByLoading(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	i.way.set(nil, isPut)
	if _, err := i.store.States.Save(ctx, "w", []byte("two"), i.tag); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Save whose answer is lost = error %v, want unavailable", err)
	}
	if _, err := i.store.Records.Create(ctx, key, port.Record{Owner: "me", Body: []byte("mine")}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Create whose answer is lost = error %v, want unavailable", err)
	}
	i.way.heal()
	doc, err := i.store.States.Load(ctx, "w", i.tag)
	if err != nil || string(doc.Body) != "two" {
		t.Errorf("Load after the lost answer = %q, error %v, want two", doc.Body, err)
	}
	if _, err := i.store.States.Save(ctx, "w", []byte("two"), i.tag); !fault.Is(err, fault.Conflict) {
		t.Errorf("Save again = error %v, want a conflict", err)
	}
	if _, err := i.store.Records.Create(ctx, key, port.Record{}); !fault.Is(err, fault.Exists) {
		t.Errorf("Create again = error %v, want exists", err)
	}
	if got, err := i.store.Records.Read(ctx, key); err != nil || got.Owner != "me" {
		t.Errorf("Read = owner %q, error %v, want me", got.Owner, err)
	}
}

func TestAWrongKeyIsDenied(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	o := i.options()
	o.Account = parse(t, strings.Replace(i.text, "AccountKey=", "AccountKey=d3Jvbmdr", 1))
	s := i.open(o)
	for call, err := range map[string]error{
		"Load": second(s.States.Load(ctx, "w", "")), "Save": second(s.States.Save(ctx, "w", nil, i.tag)),
		"Row": second(s.Index.Get(ctx, "w")), "Send": sendOne(t, s.Queues.Queue("cpu"), "x"), "Ensure": s.Queues.Ensure(ctx, "cpu"),
	} {
		if !fault.Is(err, fault.Denied) {
			t.Errorf("%s with a wrong key = error %v (%v), want denied", call, err, fault.CodeOf(err))
		} else if !strings.Contains(fault.RemedyOf(err), "role") || strings.Contains(err.Error(), "d3Jvbmc") {
			t.Errorf("%s with a wrong key says %q and advises %q", call, err, fault.RemedyOf(err))
		}
	}
}

func TestAClearedQueueLosesItsMessagesAndNothingElse(t *testing.T) {
	t.Parallel()
	i, ctx := newInstallation(t), t.Context()
	q := i.cpu(i.store)
	if err := sendOne(t, q, "x"); err != nil {
		t.Fatal(err)
	}
	d := receive(t, q, 1, time.Minute)[0]
	if _, err := q.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if err := q.Extend(ctx, &d, time.Minute); !fault.Is(err, fault.LeaseLost) {
		t.Errorf("Extend after Clear = error %v, want a lost lease", err)
	}
	if err := q.Poison(ctx, d, "why"); !fault.Is(err, fault.LeaseLost) {
		t.Errorf("Poison after Clear = error %v, want a lost lease", err)
	}
	if n, err := q.PoisonQueue().Count(ctx); n != 0 || err != nil {
		t.Errorf("the poison queue has %d messages, error %v, want none", n, err)
	}
	if errs := q.Acknowledge(ctx, []port.Delivery{d}); errs != nil {
		t.Errorf("Acknowledge after Clear = %v, want done", errs)
	}
}

// second drops the first result of a call.
func second[T any](_ T, err error) error { return err }

func lastError(names func(func(string, error) bool)) error {
	var last error
	for _, err := range names {
		last = err
	}
	return last
}
