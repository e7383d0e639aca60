package protocol

import (
	"strconv"
	"strings"
	"sync"
)

// nonce names one delivery in the hands of one Handler: the name of the Handler,
// a dot, a number.
type nonce string

// runs knows which of its own claims a Handler still stands by. A claim or a
// give-back that the store did not answer may leave a record that says
// otherwise; where the store judges by the life of the process, no time would
// ever make that record stale. Safe for concurrent use.
type runs struct {
	// id is new for each Handler.
	id string

	mu     sync.Mutex
	number uint64
	// held counts what speaks for a delivery: that it is being handled, and that
	// processes of its command could not be killed.
	held map[nonce]int
}

// nonce returns a new one.
func (h *Handler) nonce() nonce {
	h.runs.mu.Lock()
	defer h.runs.mu.Unlock()
	h.runs.number++
	return nonce(h.runs.id + "." + strconv.FormatUint(h.runs.number, 10))
}

// begin says that the delivery of n is being handled, until end.
func (h *Handler) begin(n nonce) { h.runs.add(n, 1) }

func (h *Handler) end(n nonce) { h.runs.add(n, -1) }

// keep says that processes of the delivery live on: its claim stands.
func (h *Handler) keep(n nonce) { h.runs.add(n, 1) }

func (r *runs) add(n nonce, change int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = make(map[nonce]int)
	}
	if r.held[n] += change; r.held[n] == 0 {
		delete(r.held, n)
	}
}

// abandoned reports whether the run is of this Handler and nobody is at it.
func (h *Handler) abandoned(runID string) bool {
	n := nonce(runID[strings.LastIndexByte(runID, '/')+1:])
	if !strings.HasPrefix(string(n), h.runs.id+".") {
		return false
	}
	h.runs.mu.Lock()
	defer h.runs.mu.Unlock()
	return h.runs.held[n] == 0
}
