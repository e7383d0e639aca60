package azstorage_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/azstorage"
)

// cpu returns a queue of a fresh account.
func (a account) cpu(s *port.Store) port.Queue {
	a.tb.Helper()
	if err := s.Queues.Ensure(a.tb.Context(), "cpu"); err != nil {
		a.tb.Fatal(err)
	}
	return s.Queues.Queue("cpu")
}

func sendOne(t testing.TB, q port.Queue, body string) error {
	t.Helper()
	for _, err := range q.Send(t.Context(), []port.Message{{Body: []byte(body)}}) {
		return err
	}
	return nil
}

func receive(t testing.TB, q port.Queue, most int, lock time.Duration) []port.Delivery {
	t.Helper()
	ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: most, Lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// C01 and C03: what counts is the size of the message as it is encoded, in bytes.
func TestMessagesUpToTheEdgeArriveByteForByte(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	q := a.cpu(a.open(a.options()))
	limit := q.Props().MaxMessage
	for name, c := range map[string]struct {
		body string
		fits bool
	}{
		"45,000 bytes": {strings.Repeat("x", 45_000), true},
		"49,152 bytes": {strings.Repeat("x", 49_152), true},
		"49,153 bytes": {strings.Repeat("x", 49_153), true},
		"60,000 bytes": {strings.Repeat("x", 60_000), true},
		"70,000 bytes": {strings.Repeat("x", 70_000), false},
		"the limit":    {strings.Repeat("x", limit), true},
		"one more":     {strings.Repeat("x", limit+1), false},
		"quotes alone": {strings.Repeat(`"'`, limit/2), true},
		// A request may have 131,584 bytes: 95 around the text, 5 for an ampersand.
		"ampersands to the edge": {strings.Repeat("&", 16_488) + strings.Repeat("x", limit-16_488), true},
		"one ampersand too many": {strings.Repeat("&", 16_489) + strings.Repeat("x", limit-16_489), false},
		"what quotes would be":   {"&#34; &amp;#39; \" '", true},
		"quotes and angles":      {strings.Repeat(`<&">`, limit/4), false},
		"some of both":           {strings.Repeat(`<&">`, limit/16), true},
		"two bytes a letter":     {strings.Repeat("é", limit/2), true},
		// The emulator counts 6 bytes for each of these.
		"four bytes a letter":   {strings.Repeat("🦆", limit/6), true},
		"one duck too many":     {strings.Repeat("🦆", limit/4) + "a", false},
		"line ends of all kind": {"a\nb\r\nc\rd\te", true},
		"blanks at both ends":   {"  a  ", true},
		"nothing but blanks":    {"   ", true},
		"a closing tag":         {"]]></MessageText>", true},
	} {
		err := sendOne(t, q, c.body)
		if !c.fits {
			if !fault.Is(err, fault.TooLarge) {
				t.Errorf("%s: Send = error %v, want too large", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: Send = error %v", name, err)
			continue
		}
		ds := receive(t, q, 1, time.Hour)
		if len(ds) != 1 || string(ds[0].Body) != c.body {
			t.Errorf("%s: it did not come back byte for byte", name)
			continue
		}
		if errs := q.Acknowledge(t.Context(), ds); errs != nil {
			t.Errorf("%s: Acknowledge = %v", name, errs)
		}
	}
}

func TestTextThatXMLCannotCarryIsRefusedForThatMessageAlone(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	q := a.cpu(a.open(a.options()))
	errs := q.Send(t.Context(), []port.Message{{Body: []byte("a\x01b")}, {Body: []byte("a\xffb")}, {Body: []byte("a\ufffeb")}, {Body: []byte("fine \ufffd")}})
	if len(errs) != 4 || errs[3] != nil {
		t.Fatalf("Send = %v, want an error for the first three alone", errs)
	}
	for _, err := range errs[:3] {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("Send = error %v, want invalid", err)
		}
	}
}

// C05: what cannot be decoded is moved once, as it is, and the others go on.
func TestPoisonMovesTwoOfTenAsTheyAre(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	q := a.cpu(a.open(a.options()))
	bad := map[string]bool{"%%%": true, `{"v":99}`: true}
	for i := range 10 {
		body := fmt.Sprintf(`{"n":%d}`, i)
		if i == 4 {
			body = "%%%"
		} else if i == 5 {
			body = `{"v":99}`
		}
		if err := sendOne(t, q, body); err != nil {
			t.Fatal(err)
		}
	}
	good := 0
	for _, d := range receive(t, q, 32, time.Minute) {
		if !bad[string(d.Body)] {
			good++
			q.Acknowledge(t.Context(), []port.Delivery{d})
			continue
		}
		if err := q.Poison(t.Context(), d, "cannot be decoded\x00: <\u2028>"); err != nil {
			t.Error(err)
		}
	}
	var moved []string
	for _, d := range receive(t, q.PoisonQueue(), 32, time.Minute) {
		moved = append(moved, string(d.Body))
		if d.Reason != "cannot be decoded\x00: <\u2028>" || d.Count != 1 {
			t.Errorf("%s has reason %q and count %d", d.Body, d.Reason, d.Count)
		}
		// The reason stays with the message while it is held and given back.
		if err := q.PoisonQueue().Release(t.Context(), d, 0); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(moved)
	if good != 8 || !slices.Equal(moved, []string{"%%%", `{"v":99}`}) {
		t.Errorf("%d were good and %q moved, want 8 and the two bad ones", good, moved)
	}
	for _, d := range receive(t, q.PoisonQueue(), 32, time.Minute) {
		if d.Reason == "" || !bad[string(d.Body)] {
			t.Errorf("after a release the poisoned message is %q with reason %q", d.Body, d.Reason)
		}
	}
}

// C06: the newest receipt serves for all that follows.
func TestRenewedTwiceThenAcknowledgedLeavesNothing(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	q := a.cpu(a.open(a.options()))
	if err := sendOne(t, q, "task"); err != nil {
		t.Fatal(err)
	}
	d := receive(t, q, 1, time.Minute)[0]
	old := d
	for range 2 {
		// The stored text is not the caller's to change.
		d.Body = []byte("scribble")
		if err := q.Extend(t.Context(), &d, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if errs := q.Acknowledge(t.Context(), []port.Delivery{old}); len(errs) != 1 || !fault.Is(errs[0], fault.LeaseLost) {
		t.Errorf("Acknowledge by the first receipt = %v, want a lost lease", errs)
	}
	if err := q.Release(t.Context(), d, 0); err != nil {
		t.Fatal(err)
	}
	d = receive(t, q, 1, time.Minute)[0]
	if string(d.Body) != "task" || d.Count != 2 {
		t.Errorf("after two renewals the message is %q at count %d, want task at 2", d.Body, d.Count)
	}
	if errs := q.Acknowledge(t.Context(), []port.Delivery{d}); errs != nil {
		t.Errorf("Acknowledge = %v", errs)
	}
	if n, err := q.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("Count = %d, error %v, want an empty queue", n, err)
	}
}

func TestALostAnswerOfASendIsASecondMessageWhenRepeated(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	way := newNetwork()
	o := a.options()
	o.Transport = &http.Client{Transport: way}
	q := a.cpu(a.open(o))
	way.set(nil, func(r *http.Request) bool { return r.Method == http.MethodPost })
	if err := sendOne(t, q, "once"); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Send whose answer is lost = error %v, want unavailable", err)
	}
	way.heal()
	if err := sendOne(t, q, "once"); err != nil {
		t.Fatal(err)
	}
	ds := receive(t, q, 32, time.Minute)
	if len(ds) != 2 {
		t.Fatalf("%d messages were stored, want 2: the driver tries once and its caller repeated", len(ds))
	}
	way.set(nil, func(r *http.Request) bool { return r.Method == http.MethodDelete })
	for _, err := range q.Acknowledge(t.Context(), ds) {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("Acknowledge whose answer is lost = error %v, want unavailable", err)
		}
	}
	way.heal()
	if errs := q.Acknowledge(t.Context(), ds); errs != nil {
		t.Errorf("Acknowledge again = %v, want done", errs)
	}
}

// An Extend whose answer is lost has changed the receipt: nobody knows it, and
// the message comes back when the new lock ends.
func TestALostAnswerOfAnExtendLosesTheLock(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	way := newNetwork()
	o := a.options()
	o.Transport = &http.Client{Transport: way}
	q := a.cpu(a.open(o))
	if err := sendOne(t, q, "task"); err != nil {
		t.Fatal(err)
	}
	d := receive(t, q, 1, time.Minute)[0]
	way.set(nil, isPut)
	if err := q.Extend(t.Context(), &d, time.Second); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Extend whose answer is lost = error %v, want unavailable", err)
	}
	way.heal()
	if err := q.Extend(t.Context(), &d, time.Minute); !fault.Is(err, fault.LeaseLost) {
		t.Errorf("Extend by the old receipt = error %v, want a lost lease", err)
	}
	for _, err := range q.Acknowledge(t.Context(), []port.Delivery{d}) {
		if !fault.Is(err, fault.LeaseLost) {
			t.Errorf("Acknowledge by the old receipt = error %v, want a lost lease", err)
		}
	}
}

// The service, unlike the emulator, gives one answer for a message that is gone
// and for a receipt that is not the newest.
func TestAReceiptThatTheServiceDoesNotFind(t *testing.T) {
	t.Parallel()
	gone := answer{status: 404, code: "MessageNotFound"}
	stale := answer{status: 400, code: "PopReceiptMismatch"}
	broken := answer{status: 500, code: "OperationTimedOut"}
	renewed := answer{status: 204, header: map[string]string{"x-ms-popreceipt": "new"}}
	extend := func(t *testing.T, q port.Queue, d *port.Delivery) error { return q.Extend(t.Context(), d, time.Minute) }
	acknowledge := func(t *testing.T, q port.Queue, d *port.Delivery) error {
		return errors.Join(q.Acknowledge(t.Context(), []port.Delivery{*d})...)
	}
	release := func(t *testing.T, q port.Queue, d *port.Delivery) error { return q.Release(t.Context(), *d, 0) }
	poison := func(t *testing.T, q port.Queue, d *port.Delivery) error { return q.Poison(t.Context(), *d, "reason") }
	// attempted is a renewal whose end nobody knows.
	attempted := func(t *testing.T, q port.Queue, d *port.Delivery) error {
		if err := extend(t, q, d); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Extend without an answer = error %v, want unavailable", err)
		}
		return nil
	}
	type call func(*testing.T, port.Queue, *port.Delivery) error
	for name, c := range map[string]struct {
		answers []answer
		calls   []call
		want    fault.Code
		done    bool
	}{
		"is done when acknowledged":                      {answers: []answer{gone}, calls: []call{acknowledge}, done: true},
		"is lost when the service can tell":              {answers: []answer{stale}, calls: []call{acknowledge}, want: fault.LeaseLost},
		"is lost when extended":                          {answers: []answer{gone}, calls: []call{extend}, want: fault.LeaseLost},
		"is lost when given back":                        {answers: []answer{gone}, calls: []call{release}, want: fault.LeaseLost},
		"is lost when poisoned, and nothing is moved":    {answers: []answer{gone}, calls: []call{poison}, want: fault.LeaseLost},
		"is lost after a renewal without an answer":      {answers: []answer{broken, gone}, calls: []call{attempted, acknowledge}, want: fault.LeaseLost},
		"is lost after two renewals without an answer":   {answers: []answer{broken, broken, gone}, calls: []call{attempted, attempted, acknowledge}, want: fault.LeaseLost},
		"is done after a renewal that succeeded at last": {answers: []answer{broken, renewed, gone}, calls: []call{attempted, extend, acknowledge}, done: true},
		"is lost when extended again without a new lock": {answers: []answer{broken, gone}, calls: []call{attempted, extend}, want: fault.LeaseLost},
		"is done where the renewal had not taken place":  {answers: []answer{broken, {status: 204}}, calls: []call{attempted, acknowledge}, done: true},
		"is done after a renewal":                        {answers: []answer{renewed, gone}, calls: []call{extend, acknowledge}, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, asked := scripted(t, c.answers...)
			d := port.Delivery{ID: "1", Receipt: "old", Until: time.Now()}
			var err error
			for _, call := range c.calls {
				err = call(t, s.Queues.Queue("cpu"), &d)
			}
			if c.done != (err == nil) || err != nil && !fault.Is(err, c.want) {
				t.Errorf("the last call = error %v, want fault %v or done %v", err, c.want, c.done)
			}
			if n := asked.Load(); n != int64(len(c.answers)) {
				t.Errorf("the service was asked %d times, want %d", n, len(c.answers))
			}
		})
	}
}

// TestADoubtedReceiptIsSentAsTheServiceKnowsIt looks at what goes over the wire.
func TestADoubtedReceiptIsSentAsTheServiceKnowsIt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	s, err := azstorage.Open(t.Context(), azstorage.Options{
		Account: parse(t, scriptedAccount), Prefix: "Demo",
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, r.URL.Query().Get("popreceipt"))
			return nil, errDropped
		}).client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	q := s.Queues.Queue("cpu")
	d := port.Delivery{ID: "1", Receipt: "old"}
	for range 2 {
		_ = q.Extend(t.Context(), &d, time.Minute)
	}
	_ = q.Release(t.Context(), d, 0)
	q.Acknowledge(t.Context(), []port.Delivery{d})
	if !slices.Equal(sent, []string{"old", "old", "old", "old"}) {
		t.Errorf("the receipts sent were %q, want the old one each time", sent)
	}
}

func TestThreeHundredMessagesGoAndComeInFewRounds(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.open(a.options())
	q := a.cpu(s)
	messages := make([]port.Message, 100)
	for i := range messages {
		messages[i].Body = fmt.Append(nil, i)
	}
	if errs := q.Send(t.Context(), messages); errs != nil {
		t.Fatalf("Send = %v", errs)
	}
	got := map[string]bool{}
	for rounds := 0; len(got) < len(messages); rounds++ {
		ds := receive(t, q, 100, time.Hour)
		if rounds > 4 || len(ds) == 0 || len(ds) > 32 {
			t.Fatalf("round %d gave %d messages after %d of %d", rounds, len(ds), len(got), len(messages))
		}
		for _, d := range ds {
			got[string(d.Body)] = true
		}
		if errs := q.Acknowledge(t.Context(), ds); errs != nil {
			t.Fatalf("Acknowledge = %v", errs)
		}
	}
}

func TestEnsureByOneWhoMayNotCreate(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.cpu(a.open(a.options()))
	way := newNetwork()
	way.set(func(r *http.Request) (*http.Response, error) {
		if !isPut(r) {
			return nil, nil
		}
		return answer{status: 403, code: "AuthorizationPermissionMismatch"}.to(r)
	}, nil)
	o := a.options()
	o.Transport = &http.Client{Transport: way}
	// Open goes on without what it may not create.
	s := a.open(o)
	if err := s.Queues.Ensure(t.Context(), "cpu"); err != nil {
		t.Errorf("Ensure of a queue that is there = error %v, want none", err)
	}
	if err := s.Queues.Ensure(t.Context(), "gpu"); !fault.Is(err, fault.Denied) {
		t.Errorf("Ensure of a queue that is absent = error %v, want denied", err)
	}
}

func TestQueuesOfAnotherAccount(t *testing.T) {
	t.Parallel()
	here, there := newAccount(t), newAccount(t)
	o := here.options()
	o.Queues = &there.account
	q := here.cpu(here.open(o))
	other, err := azstorage.OpenQueues(azstorage.Options{Account: there.account})
	if err != nil {
		t.Fatal(err)
	}
	if err := sendOne(t, other.Queue("cpu"), "task"); err != nil {
		t.Fatal(err)
	}
	if ds := receive(t, q, 1, time.Minute); len(ds) != 1 {
		t.Errorf("the store received %d messages that its queue account has, want 1", len(ds))
	}
	if _, err := here.open(here.options()).Queues.Queue("cpu").Count(context.WithoutCancel(t.Context())); !fault.Is(err, fault.NotFound) {
		t.Errorf("the state account has the queue too: error %v", err)
	}
}

func TestMessagesNeverExpire(t *testing.T) {
	t.Parallel()
	text := emulator.Account(t)
	a := account{t, parse(t, text)}
	q := a.cpu(a.open(a.options()))
	if err := sendOne(t, q, `{"version": 1}`); err != nil {
		t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientFromConnectionString(text, "cpu", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.PeekMessage(t.Context(), nil)
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("PeekMessage = %v, error %v", got.Messages, err)
	}
	m := got.Messages[0]
	if m.ExpirationTime == nil || m.ExpirationTime.Year() < 9999 {
		t.Errorf("the message expires at %v, want never", m.ExpirationTime)
	}
	// C04: plain text on the wire, no base64.
	if *m.MessageText != `{"version": 1}` {
		t.Errorf("another client reads %q, want the text as it was sent", *m.MessageText)
	}
}
