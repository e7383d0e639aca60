package azbus

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// closeBound is how long saying goodbye may take.
const closeBound = 5 * time.Second

// connection is a client with its links by queue. It has one network connection
// in its life.
type connection struct {
	client *azservicebus.Client
	once   sync.Once
	// discarded is true from before the client is closed.
	discarded atomic.Bool
	// dialled is true once the client has had its network connection.
	dialled atomic.Bool

	mu      sync.Mutex
	senders map[string]*azservicebus.Sender
	// managers never receive: they settle, renew and look.
	managers map[string]*azservicebus.Receiver
	// idle are receivers that nobody uses; each serves one Receive at a time.
	idle map[string][]*azservicebus.Receiver
	// paces are how many messages the last receive had.
	paces map[string]int
	// held are the messages that were received and not settled, by lock token.
	held map[[16]byte]heldMessage
	// prune is the size of held at which those are dropped whose lock is over.
	prune int
}

type heldMessage struct {
	m     *azservicebus.ReceivedMessage
	until time.Time
}

// leastHeld is how many messages may be held before anybody looks for old ones.
const leastHeld = 1024

func newConnection() *connection {
	return &connection{
		senders:  map[string]*azservicebus.Sender{},
		managers: map[string]*azservicebus.Receiver{},
		idle:     map[string][]*azservicebus.Receiver{},
		paces:    map[string]int{},
		held:     map[[16]byte]heldMessage{},
		prune:    leastHeld,
	}
}

func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	// The links are gone either way, and the service frees what it held.
	_ = c.client.Close(ctx)
}

func (c *connection) sender(q *queue) (*azservicebus.Sender, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.senders[q.key]; s != nil {
		return s, nil
	}
	s, err := c.client.NewSender(q.parent, nil)
	if err == nil {
		c.senders[q.key] = s
	}
	return s, err
}

func (c *connection) manager(q *queue) (*azservicebus.Receiver, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.managers[q.key]; r != nil {
		return r, nil
	}
	r, err := c.open(q)
	if err == nil {
		c.managers[q.key] = r
	}
	return r, err
}

func (c *connection) open(q *queue) (*azservicebus.Receiver, error) {
	o := &azservicebus.ReceiverOptions{}
	if q.dead {
		o.SubQueue = azservicebus.SubQueueDeadLetter
	}
	return c.client.NewReceiverForQueue(q.parent, o)
}

// borrow returns a receiver that nobody else uses until giveBack, and whether
// it is a new one.
func (c *connection) borrow(q *queue) (r *azservicebus.Receiver, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.idle[q.key]; len(all) > 0 {
		// The last one, which has most likely asked for messages that did not come.
		c.idle[q.key] = all[:len(all)-1]
		return all[len(all)-1], false, nil
	}
	r, err = c.open(q)
	return r, true, err
}

func (c *connection) giveBack(q *queue, r *azservicebus.Receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle[q.key] = append(c.idle[q.key], r)
}

// pace returns how many messages a receive should ask for at first.
func (c *connection) pace(q *queue) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(1, c.paces[q.key])
}

func (c *connection) setPace(q *queue, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paces[q.key] = n
}

// hold keeps m, so that it can be settled on its link.
func (c *connection) hold(m *azservicebus.ReceivedMessage, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) >= c.prune {
		now := time.Now()
		maps.DeleteFunc(c.held, func(_ [16]byte, h heldMessage) bool { return h.until.Before(now) })
		c.prune = max(leastHeld, 2*len(c.held))
	}
	c.held[m.LockToken] = heldMessage{m, until}
}

// prolong tells that a lock was renewed.
func (c *connection) prolong(token [16]byte, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.held[token]; ok {
		c.held[token] = heldMessage{h.m, until}
	}
}

// release gives up the message with that token. For one that is not held, and
// for a second try after the first had no answer, the token alone must do.
func (c *connection) release(token [16]byte) *azservicebus.ReceivedMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.held[token]; ok {
		delete(c.held, token)
		return h.m
	}
	return &azservicebus.ReceivedMessage{LockToken: token}
}
