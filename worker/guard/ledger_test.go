package guard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLedgerDecidesWhoHasToDie(t *testing.T) {
	t.Parallel()
	const ttl = 100 * time.Nanosecond // one nanosecond is one step of these tests
	register := func(sent Moment) message { return message{add, Group{RunID: "r", PGID: 7, TTL: ttl, Sent: sent}} }
	beatAt := func(sent Moment) message { return message{beat, Group{RunID: "r", Sent: sent}} }
	forget := message{remove, Group{RunID: "r"}}
	type step struct {
		at Moment
		message
	}
	for name, tc := range map[string]struct {
		steps []step
		now   Moment
		dies  bool
		wait  time.Duration // where it lives and has a deadline
	}{
		"alive just before 0.8 of the ttl":              {[]step{{0, register(0)}}, 79, false, 1},
		"dies at 0.8 of the ttl":                        {[]step{{0, register(0)}}, 80, true, 0},
		"the moment of sending counts, not of the news": {[]step{{30, register(0)}}, 80, true, 0},
		"a newer beat moves the deadline":               {[]step{{0, register(0)}, {60, beatAt(50)}}, 129, false, 1},
		"and no further":                                {[]step{{0, register(0)}, {60, beatAt(50)}}, 130, true, 0},
		"an older beat changes nothing":                 {[]step{{0, register(0)}, {60, beatAt(50)}, {61, beatAt(10)}}, 129, false, 1},
		"a beat from the future counts as of now":       {[]step{{0, register(0)}, {60, beatAt(1000)}}, 140, true, 0},
		"a late registration with an old beat dies":     {[]step{{200, register(0)}}, 200, true, 0},
		"no ttl, no deadline":                           {[]step{{0, message{add, Group{RunID: "r", PGID: 7}}}}, 1 << 60, false, 0},
		"what was removed does not die":                 {[]step{{0, register(0)}, {10, forget}}, 1 << 60, false, 0},
		"a beat of an unknown run registers nothing":    {[]step{{0, beatAt(0)}}, 1 << 60, false, 0},
		"a registration replaces the one before":        {[]step{{0, register(0)}, {50, register(50)}}, 129, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledger{}
			for _, s := range tc.steps {
				l.apply(s.message, s.at)
			}
			reported := 0
			l.expire(tc.now, func(Group) { reported++ })
			l.expire(tc.now, func(Group) { reported++ })
			if dies := len(l.doomed()) > 0; dies != tc.dies {
				t.Errorf("at %d it dies: %v, want %v", tc.now, dies, tc.dies)
			}
			if want := map[bool]int{true: 1}[tc.dies]; reported != want {
				t.Errorf("it was reported %d times, want %d", reported, want)
			}
			if wait, found := l.wait(tc.now); wait != tc.wait || found != (tc.wait > 0) {
				t.Errorf("wait(%d) = %v, %v, want %v", tc.now, wait, found, tc.wait)
			}
		})
	}
}

func TestADoomedRunStaysDoomed(t *testing.T) {
	t.Parallel()
	l := ledger{}
	g := Group{RunID: "r", TTL: 100, Sent: 0}
	l.apply(message{add, g}, 0)
	l.expire(80, func(Group) {})
	l.apply(message{beat, Group{RunID: "r", Sent: 85}}, 85)
	g.PGID, g.Sent = 7, 85 // a worker that was stopped just before its start goes on
	l.apply(message{add, g}, 85)
	if diff := cmp.Diff([]Group{g}, l.doomed()); diff != "" {
		t.Errorf("doomed after a late beat (-want +got):\n%s", diff)
	}
}

func TestTheEndOfThePipeDoomsEveryRun(t *testing.T) {
	t.Parallel()
	l := ledger{}
	for _, id := range []string{"a", "b"} {
		l.apply(message{add, Group{RunID: id}}, 0)
	}
	l.expireAll()
	if got := len(l.doomed()); got != 2 {
		t.Errorf("%d runs are doomed, want 2", got)
	}
}
