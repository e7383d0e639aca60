package coord

import (
	"container/list"
	"encoding/json"
	"sync"

	"jobq/core/engine"
	"jobq/core/port"
)

// entry is a loaded workflow. It is in the hands of one job at a time: take
// removes it from the cache, put brings it back.
type entry struct {
	run  *engine.Run
	plan *plan
	tag  port.Tag
	size int
	// fresh says that the state was read or saved by the job that holds it.
	fresh bool
	// marked are the accepted sends that run has as running and the stored state
	// does not.
	marked map[engine.Attempt]struct{}
	// unsaved are attempts that got their number outside a step of a job, because
	// a back-off ended meanwhile. The next save covers them, then they are sent.
	unsaved []engine.Attempt
	// unsavedMoves are the changes by which they did.
	unsavedMoves []engine.Change
	// outputs are those, by outputKey, that were read for conditions which wait for
	// others; kept is their size.
	outputs map[string]json.RawMessage
	kept    int
}

// bytes is about the memory of e, less its plan.
func (e *entry) bytes() int { return e.size + e.kept }

// cache keeps loaded workflows, the least recently used leaving first. What a
// workflow's entry must not lose is in its note.
type cache struct {
	mu    sync.Mutex
	limit int
	// size is about the memory of all entries. A plan that several share counts once:
	// users says how many do.
	size  int
	users map[*plan]int
	order *list.List
	byID  map[string]*list.Element
}

type cached struct {
	wf string
	e  *entry
}

func newCache(limit int) *cache {
	return &cache{limit: limit, users: map[*plan]int{}, order: list.New(), byID: map[string]*list.Element{}}
}

// take removes and returns the entry of wf, nil when there is none.
func (c *cache) take(wf string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byID[wf]
	if !ok {
		return nil
	}
	return c.remove(el)
}

func (c *cache) remove(el *list.Element) *entry {
	item := el.Value.(cached)
	c.order.Remove(el)
	delete(c.byID, item.wf)
	c.size -= item.e.bytes()
	if c.users[item.e.plan]--; c.users[item.e.plan] == 0 {
		delete(c.users, item.e.plan)
		c.size -= item.e.plan.bytes
	}
	return item.e
}

// put brings e back. Where another job has brought one of a later version
// meanwhile, that one stays.
func (c *cache) put(wf string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byID[wf]; ok {
		if el.Value.(cached).e.run.State().Version > e.run.State().Version {
			return
		}
		c.remove(el)
	}
	c.byID[wf] = c.order.PushFront(cached{wf, e})
	c.size += e.bytes()
	if c.users[e.plan]++; c.users[e.plan] == 1 {
		c.size += e.plan.bytes
	}
	for c.size > c.limit && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}
