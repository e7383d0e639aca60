package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"jobq/core/coord"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/internal/config"
	"jobq/store"
)

// session is an open store with a coordinator over it, which applies commands
// and answers questions.
type session struct {
	*coord.Coordinator
	store     *port.Store
	scheduler sched.Scheduler
	// place is STORAGE/PREFIX, inbox the name of its completion queue.
	place, inbox string
	options      coord.Options
}

// inboxName returns the name of the completion queue of prefix.
func inboxName(prefix string) string { return strings.ToLower(prefix) + "-workflow-completions" }

// open opens the store that the call is about. kind says to others what this
// process is.
func (a *app) open(ctx context.Context, kind string) (*session, error) {
	storage, prefix, err := a.prefix()
	if err != nil {
		return nil, err
	}
	return a.openPlace(ctx, storage, prefix, kind, coord.Options{})
}

// openPlace is open for a place that is known already.
func (a *app) openPlace(ctx context.Context, storage, prefix, kind string, o coord.Options) (*session, error) {
	l := store.Location{Storage: storage, Prefix: prefix}
	s := &session{place: l.String(), inbox: inboxName(prefix)}
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	a.where = s.place
	if storage == store.Local {
		a.where = fmt.Sprintf("%s in %s", s.place, home)
	}
	s.store, err = store.Open(ctx, l, store.Options{Home: home, Kind: kind, Logger: a.log})
	if err != nil {
		return nil, err
	}
	o.Prefix, o.Queues, o.Inbox, o.Logger = s.place, a.values.Text(config.Queues), s.inbox, a.log
	s.scheduler = sched.Real{}
	s.options = o
	s.Coordinator = coord.New(s.store, s.scheduler, o)
	return s, nil
}

// commander returns the coordinator that applies commands to workflow id. The
// queues of a run of one machine have a name space of their own, in which its
// inbox has the default name: what a command sends must name that one.
func (s *session) commander(ctx context.Context, id string) (*coord.Coordinator, error) {
	_, namespace, err := s.Definition(ctx, id)
	if err != nil || namespace == "" {
		return s.Coordinator, err
	}
	o := s.options
	o.Inbox = ""
	return coord.New(s.store, s.scheduler, o), nil
}

// with opens the store, calls f and closes the store.
func (a *app) with(ctx context.Context, f func(*session) error) (err error) {
	s, err := a.open(ctx, "command")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	return f(s)
}

// by returns the command of this call.
func (a *app) by() coord.Command { return coord.Command{By: a.user()} }

// member describes this process to others.
func member(kind string) port.Member {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return port.Member{Kind: kind, Host: host, PID: os.Getpid(), Version: version(), Started: time.Now().UTC()}
}
