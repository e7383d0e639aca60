package storetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"jobq/core/fault"
	"jobq/core/port"
)

// differential makes random calls from two processes and compares every answer
// with the model's. Each kind of call must have succeeded at least once, or the
// comparison said nothing about it.
func differential(t *testing.T, h Harness) {
	t.Helper()
	// What works on deliveries needs others before it, so it comes more often.
	kinds := slices.Sorted(maps.Keys(calls))
	kinds = append(kinds, slices.Repeat([]string{"Send", "Receive", "Receive", "Acknowledge", "Extend", "Release", "Poison", "Finish", "CreateRecord"}, 3)...)
	var mu sync.Mutex
	reached := map[string]int{}
	missing := kinds
	// What a round does is chance: a kind that it missed has further rounds.
	for round := 0; round < 10 && len(missing) > 0 && !t.Failed(); round++ {
		// The struct hides t.Deadline, which may not be called in a bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			m := newMachine(t, rt, h.New(t))
			defer func() {
				m.close()
				mu.Lock()
				defer mu.Unlock()
				for name, n := range m.reached {
					reached[name] += n
				}
			}()
			for range rapid.IntRange(20, 150).Draw(rt, "calls") {
				m.call = rapid.SampledFrom(kinds).Draw(rt, "call")
				calls[m.call](m)
			}
		})
		missing = slices.DeleteFunc(slices.Sorted(maps.Keys(calls)), func(name string) bool { return reached[name] > 0 })
	}
	if len(missing) > 0 && !t.Failed() {
		t.Errorf("%v never succeeded, so they were not compared", missing)
	}
}

// machine is one run of random calls.
type machine struct {
	*rapid.T
	*model
	ctx    testing.TB
	stores []*port.Store
	// call is the name of the running action, reached counts successes by name.
	call    string
	reached map[string]int
	// tags is every tag that the store ever gave, and two that it never did.
	tags []port.Tag
	// deliveries is what was received, with the name of its queue.
	deliveries []received
	sent       int
}

type received struct {
	queue string
	port.Delivery
}

// newMachine returns a machine of two processes on fresh data.
func newMachine(t *testing.T, rt *rapid.T, data Data) *machine {
	m := &machine{
		T:       rt,
		model:   newModel(),
		ctx:     t,
		stores:  []*port.Store{data.Open(), data.Open()},
		reached: map[string]int{},
		tags:    []port.Tag{"", "no-such-tag"},
	}
	for _, name := range []string{"cpu", inboxName} {
		if err := m.stores[0].Queues.Ensure(t.Context(), name); err != nil {
			m.Fatalf("Ensure(%s) = error %v", name, err)
		}
	}
	return m
}

func (m *machine) close() {
	for _, s := range m.stores {
		if err := s.Close(); err != nil {
			m.Errorf("Close = error %v", err)
		}
	}
}

// store returns one of the processes.
func (m *machine) store() *port.Store {
	return m.stores[rapid.IntRange(0, len(m.stores)-1).Draw(m.T, "process")]
}

func (m *machine) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(m.T, what)
}

func (m *machine) workflow() string { return m.pick("workflow", "w", "w2", "W") }

func (m *machine) recordKey() port.RecordKey {
	return port.RecordKey{Workflow: m.workflow(), Task: m.pick("task", "a", "a/b"), Attempt: rapid.Uint32Range(1, 2).Draw(m.T, "attempt")}
}

func (m *machine) text() string { return rapid.StringN(0, 8, -1).Draw(m.T, "text") }

// tag returns current or any tag that was ever seen.
func (m *machine) tag(current port.Tag) port.Tag {
	if rapid.IntRange(0, 3).Draw(m.T, "tag is current") > 0 {
		return current
	}
	return rapid.SampledFrom(m.tags).Draw(m.T, "tag")
}

// verdict compares an answer with what the model allows and reports success.
func (m *machine) verdict(err error, allowed ...fault.Code) bool {
	got := codeOf(err)
	if !slices.Contains(allowed, got) {
		m.Fatalf("%s = %v (error %v), the model says %v", m.call, got, err, allowed)
	}
	if got == success {
		m.reached[m.call]++
	}
	return got == success
}

// wrote is verdict for a call that gives a new tag.
func (m *machine) wrote(tag port.Tag, err error, allowed ...fault.Code) bool {
	if !m.verdict(err, allowed...) {
		return false
	}
	if slices.Contains(m.tags, tag) {
		m.Fatalf("%s gave the tag %q a second time", m.call, tag)
	}
	m.tags = append(m.tags, tag)
	return true
}

func (m *machine) equal(got, want any) {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
		m.Fatalf("%s differs from the model (-model +store):\n%s", m.call, diff)
	}
}

// message returns a message that no other equals.
func (m *machine) message() port.Message {
	m.sent++
	name := fmt.Sprint("message ", m.sent)
	return port.Message{ID: name, Body: []byte(name)}
}
