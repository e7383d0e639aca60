package coord

import (
	"container/list"
	"sync"
	"time"

	"jobq/core/engine"
	"jobq/core/port"
)

// entry is a loaded workflow. It is in the hands of one caller at a time: take
// removes it from the cache, put brings it back.
type entry struct {
	run  *engine.Run
	plan *plan
	tag  port.Tag
	size int
	// accepted are sends that the queue took since the last save; the state in
	// run has them as running, the stored state does not.
	accepted []engine.Attempt
	// memo is what this process knows about rows and wakes of the workflow.
	memo memo
}

// memo survives the loss of an entry's state: it is about what this process did.
type memo struct {
	rowTag      port.Tag
	projected   time.Time
	stale       bool // the row is older than the saved state
	dueAt       time.Time
	wakeAt      time.Time
	wakeDelay   time.Duration
	cancelEpoch uint64
}

// cache keeps loaded workflows, the least recently used leaving first.
type cache struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List
	byID  map[string]*list.Element
	// marks are accepted sends of entries that were thrown away.
	marks map[string][]engine.Attempt
}

type cached struct {
	wf string
	e  *entry
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), byID: map[string]*list.Element{}, marks: map[string][]engine.Attempt{}}
}

// take removes and returns the entry of wf, nil when there is none, and the
// marks that were kept for it.
func (c *cache) take(wf string) (*entry, []engine.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	marks := c.marks[wf]
	delete(c.marks, wf)
	el, ok := c.byID[wf]
	if !ok {
		return nil, marks
	}
	return c.remove(el), marks
}

// keepMarks holds accepted sends until the next take.
func (c *cache) keepMarks(wf string, marks []engine.Attempt) {
	if len(marks) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks[wf] = append(c.marks[wf], marks...)
}

func (c *cache) remove(el *list.Element) *entry {
	item := el.Value.(cached)
	c.order.Remove(el)
	delete(c.byID, item.wf)
	c.size -= item.e.size
	return item.e
}

// put brings e back. Where another caller has brought one of a later version
// meanwhile, that one stays. Entries with unsaved marks are not pushed out: they
// leave by their trailing save.
func (c *cache) put(wf string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byID[wf]; ok {
		other := el.Value.(cached).e
		if other.run.State().Version > e.run.State().Version {
			return
		}
		c.remove(el)
	}
	c.byID[wf] = c.order.PushFront(cached{wf, e})
	c.size += e.size
	for el := c.order.Back(); el != nil && c.size > c.limit && el != c.order.Front(); {
		before := el.Prev()
		if len(el.Value.(cached).e.accepted) == 0 {
			c.remove(el)
		}
		el = before
	}
}
