package local

import "sync"

// bell wakes receivers that wait for messages of a queue.
type bell struct {
	mu      sync.Mutex
	waiting map[string]*listeners
	// arrived has an entry when somebody began to wait.
	arrived chan struct{}
}

type listeners struct {
	count int
	rung  chan struct{}
}

func newBell() *bell {
	return &bell{waiting: map[string]*listeners{}, arrived: make(chan struct{}, 1)}
}

// listen returns a channel that is closed at the next ring for queue. The
// caller calls leave when it no longer waits. Listen before looking, so that no
// message falls in between.
func (b *bell) listen(queue string) (rung <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.waiting[queue]
	if l == nil {
		l = &listeners{rung: make(chan struct{})}
		b.waiting[queue] = l
	}
	l.count++
	select {
	case b.arrived <- struct{}{}:
	default:
	}
	return l.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if l.count--; l.count == 0 && b.waiting[queue] == l {
			delete(b.waiting, queue)
		}
	}
}

// awaited reports whether anybody waits.
func (b *bell) awaited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}

func (b *bell) ring(queues ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, queue := range queues {
		b.close(queue)
	}
}

func (b *bell) ringAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue := range b.waiting {
		b.close(queue)
	}
}

// close wakes the listeners of queue. The mutex is held.
func (b *bell) close(queue string) {
	if l, ok := b.waiting[queue]; ok {
		close(l.rung)
		delete(b.waiting, queue)
	}
}
