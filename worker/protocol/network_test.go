package protocol_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"jobq/internal/busstand"
)

// network is the way from the worker to its store, which can be disturbed.
type network interface {
	// loseCreates drops the answers of the next n creates of a record, loseChanges
	// those of changes, loseSends those of sends to the inbox. What was asked for
	// happens.
	loseCreates(n int)
	loseChanges(n int)
	loseSends(n int)
	// failSends has the next n sends to the inbox not happen.
	failSends(n int)
	// cut takes the records away, and brings them back. deny takes the right to use
	// them, on Azure that to the whole account.
	cut(away bool)
	deny(denied bool)
	// left is how many of these have not happened yet, as far as known.
	left() int
}

// portNetwork disturbs above the driver: memory has no wire.
type portNetwork struct {
	records *flaky
	queues  *brokenQueues
}

func newPortNetwork(r *rig) *portNetwork {
	n := &portNetwork{r.withRecords(&flaky{}), &brokenQueues{Queues: r.port.Queues}}
	r.port.Queues = n.queues
	return n
}

func (n *portNetwork) loseCreates(times int) { n.records.lostCreates = times }
func (n *portNetwork) loseChanges(times int) { n.records.lostChanges = times }
func (n *portNetwork) loseSends(times int)   { n.queues.lost = times }
func (n *portNetwork) failSends(times int)   { n.queues.fails = times }
func (n *portNetwork) cut(away bool)         { n.records.set(away) }
func (n *portNetwork) deny(denied bool)      { n.records.refuse(denied) }
func (n *portNetwork) left() int {
	return n.records.lostCreates + n.records.lostChanges + n.queues.lost + n.queues.fails
}

// wire disturbs below the client library: a request is carried out by the
// service and its answer dropped, or it does not get there.
type wire struct {
	inner http.RoundTripper

	mu               sync.Mutex
	creates, changes int // answers to lose
	sends, unsent    int // answers to lose, requests that fail
	away, denied     bool
}

var errDropped = errors.New("the connection broke")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	stops, loses := w.fate(r)
	if stops {
		return nil, errDropped
	}
	if w.isDenied() {
		h := http.Header{"X-Ms-Error-Code": {"AuthorizationPermissionMismatch"}}
		return &http.Response{StatusCode: http.StatusForbidden, ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: http.NoBody, Request: r}, nil
	}
	resp, err := w.inner.RoundTrip(r)
	if err == nil && loses {
		_ = resp.Body.Close()
		return nil, errDropped
	}
	return resp, err
}

// fate says whether r does not get there, and whether its answer does not.
func (w *wire) fate(r *http.Request) (stops, loses bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	record := strings.Contains(r.URL.Path, "-runs/attempts/")
	switch {
	case record && w.away:
		return true, false
	case record && r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "":
		return false, use(&w.creates)
	case record && r.Method == http.MethodPut:
		return false, use(&w.changes)
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/"+inbox+"/messages"):
		return use(&w.unsent), use(&w.sends)
	}
	return false, false
}

func use(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return true
}

func (w *wire) set(n *int, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n = times
}

func (w *wire) loseCreates(n int) { w.set(&w.creates, n) }
func (w *wire) loseChanges(n int) { w.set(&w.changes, n) }
func (w *wire) loseSends(n int)   { w.set(&w.sends, n) }
func (w *wire) failSends(n int)   { w.set(&w.unsent, n) }

func (w *wire) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.creates + w.changes + w.sends + w.unsent
}

func (w *wire) cut(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

func (w *wire) deny(denied bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied = denied
}

func (w *wire) isDenied() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.denied
}

// busNetwork has its sends disturbed by the namespace itself.
type busNetwork struct {
	*wire
	server *busstand.Server
}

func (n *busNetwork) loseSends(times int) {
	n.server.Inject(busstand.Rule{Op: busstand.OpSend, Queue: inbox, Times: times, LoseAnswer: true})
}

func (n *busNetwork) failSends(times int) {
	n.server.Inject(busstand.Rule{Op: busstand.OpSend, Queue: inbox, Times: times, Condition: busstand.Timeout})
}
