package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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
	// absent says that there is no data at all.
	absent  bool
	options coord.Options
	// commandLine returns what to type for a further verb about the same place.
	commandLine func(words ...string) string
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
	s := &session{place: l.String(), inbox: inboxName(prefix), commandLine: a.commandLine}
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	a.where = s.place
	if storage == store.Local {
		a.where = fmt.Sprintf("%s in %s", s.place, home)
	}
	if kind == kindCommand && storage == store.Local && !exists(filepath.Join(home, databaseFile)) {
		// To look at what is not there must not make it: a home whose name is
		// mistyped would stay.
		l.Storage, s.absent = store.Memory, true
	}
	s.store, err = store.Open(ctx, l, store.Options{
		Home: home, Kind: kind, Logger: a.log, Getenv: func(name string) string { return a.env[name] },
		LookOnly: kind == kindCommand,
		Queues:   a.values.Text(config.Queues), Blobs: a.values.Text(config.Blobs),
		HTTPPool: a.values.Int(config.HTTPPool),
	})
	if err != nil && storage == store.Local {
		err = homeRemedy(err)
	}
	if err != nil {
		return nil, err
	}
	o.Prefix, o.Queues, o.Inbox, o.Logger = s.place, a.values.Text(config.Queues), s.inbox, a.log
	s.scheduler = sched.Real{}
	s.options = o
	s.Coordinator = coord.New(s.store, s.scheduler, o)
	return s, nil
}

// databaseFile is the file by which a home is known.
const databaseFile = "store.db"

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// homeRemedy gives an error of the store of this machine the remedy of somebody who
// chose its directory: no service is behind it. Of other errors it would lead astray.
func homeRemedy(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || fault.RemedyOf(err) != e.Code().Remedy() {
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return e.WithRemedy("free some space on the disk of JOBQ_HOME and try again; a run goes on with `jobq run --resume ID`")
	case e.Code() == fault.Unavailable, e.Code() == fault.Denied:
		return e.WithRemedy("set JOBQ_HOME to a directory on a local disk that you can write to")
	}
	return err
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
		return nil, noTask(id, sortedKeys(missing)[0], taskNames(d))
	}
	return s.Coordinator, nil
}

func noTask(id, name string, names []string) error {
	remedy := "`jobq tasks " + id + "` lists its tasks"
	if best := nearest(name, names); best != "" {
		remedy = "did you mean " + shellQuote(best) + "? " + remedy
	}
	return fault.Newf(fault.NotFound, "workflow %s has no task %s", id, shellQuote(name)).WithRemedy(remedy)
}

// with opens the store to look at what is there, or to change it, calls f and
// closes the store.
func (a *app) with(ctx context.Context, f func(*session) error) error {
	return a.withKind(ctx, kindCommand, f)
}

// withKind is with for a process of another kind.
func (a *app) withKind(ctx context.Context, kind string, f func(*session) error) (err error) {
	s, err := a.open(ctx, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if s.absent {
		a.note("there is no data yet of %s", a.where)
	}
	return s.propose(ctx, f(s))
}

// propose gives the error that a workflow does not exist the name of one that does.
func (s *session) propose(ctx context.Context, err error) error {
	id, absent := coord.AbsentWorkflow(err)
	if _, several := err.(interface{ Unwrap() []error }); !absent || several {
		return err
	}
	newest, _, listing := s.List(ctx, port.Filter{Limit: listPage})
	if listing != nil {
		return err
	}
	ids := make([]string, len(newest))
	for i := range newest {
		ids[i] = newest[i].WorkflowID
	}
	best := nearest(id, ids)
	if best == "" {
		return err
	}
	return fault.New(fault.NotFound, err.Error()).WithRemedy("did you mean " + best + "? " + fault.RemedyOf(err))
}

// presentEvery is the rhythm in which a service looks whether its store is there.
const presentEvery = time.Second

// whilePresent returns a context that ends with ctx and when the store is removed
// under this process. done ends it and returns the error of that removal.
func (s *session) whilePresent(ctx context.Context) (serving context.Context, done func() error) {
	serving, cancel := context.WithCancelCause(ctx)
	if s.store.Present == nil {
		return serving, func() error { cancel(nil); return nil }
	}
	var lost error
	var watching sync.WaitGroup
	watching.Go(func() {
		for sleep(serving, presentEvery) == nil {
			if lost = s.store.Present(); lost != nil {
				cancel(lost)
				return
			}
		}
	})
	return serving, func() error {
		cancel(nil)
		watching.Wait()
		return lost
	}
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
