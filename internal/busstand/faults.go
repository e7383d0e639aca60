package busstand

import (
	"slices"
	"strings"
	"time"
)

// Op is a kind of call that a Rule can be about and that is counted.
type Op string

// The kinds of calls.
const (
	OpAttach   Op = "attach"
	OpToken    Op = "token"
	OpSend     Op = "send"
	OpSettle   Op = "settle"
	OpRenew    Op = "renew"
	OpPeek     Op = "peek"
	OpSchedule Op = "schedule"
	OpCancel   Op = "cancel"
	OpAdmin    Op = "admin"
)

// The conditions of Rule.Condition that tests name most.
const (
	ServerBusy   = "com.microsoft:server-busy"
	Unauthorized = "amqp:unauthorized-access"
	Forced       = "amqp:link:detach-forced"
	Timeout      = "com.microsoft:timeout"

	conditionNotFound = "amqp:not-found"
	conditionLockLost = "com.microsoft:message-lock-lost"
	conditionTooLarge = "amqp:link:message-size-exceeded"
	conditionRefused  = "amqp:not-allowed"
	conditionInvalid  = "amqp:decode-error"
	conditionLimit    = "amqp:link:transfer-limit-exceeded"
)

// Rule is a fault. It applies to calls of one kind.
type Rule struct {
	Op Op
	// Queue is the queue that the call is about; empty for any.
	Queue string
	// Times is how often the rule applies; 0 for always.
	Times int
	// Condition refuses the call, which then does nothing.
	Condition string
	// LoseAnswer carries the call out and drops the connection instead of
	// answering.
	LoseAnswer bool
	// Delay passes between the call and its answer.
	Delay time.Duration
	// Twice carries a send out twice, as a client does that repeats it.
	Twice bool
}

// Inject adds a rule. The first that matches a call applies.
func (s *Server) Inject(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &r)
}

// Heal removes every rule.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// Calls returns how many calls of a kind there were.
func (s *Server) Calls(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// DropConnections closes every connection without a word.
func (s *Server) DropConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.drop()
	}
}

// DropLinks detaches every link of a queue, as the service does with idle ones.
func (s *Server) DropLinks(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detachAll(strings.ToLower(queue), Forced)
}

// LoseLocks ends every lock of a queue now.
func (s *Server) LoseLocks(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[strings.ToLower(queue)]
	if q == nil {
		return
	}
	var held []*message
	for _, m := range q.locks {
		held = append(held, m)
	}
	slices.SortFunc(held, func(a, b *message) int { return int(a.sequence - b.sequence) })
	for _, m := range held {
		q.fail(m)
	}
}

// detachAll ends the links of a queue, its dead-letter queue and their
// management nodes.
func (s *Server) detachAll(key, condition string) {
	for c := range s.conns {
		for _, session := range c.sessions {
			for _, l := range session.links {
				if l.entity == key || strings.HasPrefix(l.entity, key+"/") {
					l.detach(condition, "the stand-in was told to")
				}
			}
		}
	}
}

// call is one call of a client in the hands of apply.
type call struct {
	op    Op
	queue string
	conn  *conn
	// do carries it out; answer and refuse reply.
	do     func()
	answer func()
	refuse func(condition string)
}

// apply counts a call and carries it out under the rule that matches, if any.
func (s *Server) apply(c call) {
	s.calls[c.op]++
	r := s.match(c.op, c.queue)
	if r.Condition != "" {
		s.later(r.Delay, func() { c.refuse(r.Condition) })
		return
	}
	c.do()
	if r.Twice {
		c.do()
	}
	if r.LoseAnswer {
		c.conn.drop()
		return
	}
	s.later(r.Delay, c.answer)
}

func (s *Server) match(op Op, queue string) Rule {
	for i, r := range s.rules {
		if r.Op != op || r.Queue != "" && !strings.EqualFold(r.Queue, queue) {
			continue
		}
		if r.Times == 1 {
			s.rules = slices.Delete(s.rules, i, i+1)
		} else if r.Times > 1 {
			r.Times--
		}
		return *r
	}
	return Rule{}
}
