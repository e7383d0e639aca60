package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"jobq/core/coord"
	"jobq/core/fault"
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
	s.store, err = store.Open(ctx, l, store.Options{
		Home: home, Kind: kind, Logger: a.log, Getenv: func(name string) string { return a.env[name] },
		Queues: a.values.Text(config.Queues), Blobs: a.values.Text(config.Blobs),
		HTTPPool: a.values.Int(config.HTTPPool),
	})
	if err != nil {
		return nil, err
	}
	o.Prefix, o.Queues, o.Inbox, o.Logger = s.place, a.values.Text(config.Queues), s.inbox, a.log
	s.scheduler = sched.Real{}
	s.options = o
	s.Coordinator = coord.New(s.store, s.scheduler, o)
	return s, nil
}

// commander returns the coordinator that applies commands to workflow id. Fails
// with fault.NotFound when the workflow has not all of tasks.
func (s *session) commander(ctx context.Context, id string, tasks ...string) (*coord.Coordinator, error) {
	d, _, err := s.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, name := range tasks {
		missing[name] = true
	}
	for i := range d.Tasks {
		delete(missing, d.Tasks[i].Name)
	}
	if len(missing) > 0 {
		return nil, noTask(id, sortedKeys(missing)[0])
	}
	return s.Coordinator, nil
}

func noTask(id, name string) error {
	return fault.Newf(fault.NotFound, "workflow %s has no task %s", id, shellQuote(name)).
		WithRemedy("`jobq tasks " + id + "` lists its tasks")
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
