package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/port"
	"jobq/internal/config"
	"jobq/internal/obs"
)

const (
	kindCoordinator = "coordinator"
	kindWorker      = "worker"
	kindRun         = "run"
	// kindCommand only looks, or changes what is there.
	kindCommand = "command"
	kindSubmit  = "submit"
)

const (
	// presenceBeat is the rhythm in which a process says that it is there.
	presenceBeat = 30 * time.Second
	// lastWords bounds what is still said to the store after a stop.
	lastWords = 10 * time.Second
)

func newCoordinator(a *app) *cobra.Command {
	return a.command(verb{
		use: "coordinator", short: "Advance submitted workflows until it is stopped", group: groupService, service: true,
		long: `Advance the workflows of one STORAGE/PREFIX until it is stopped with Ctrl-C or SIGTERM. It may be killed
at any moment. A second one waits, and takes over when the first is gone.`,
		example: "  jobq coordinator\n  jobq myaccount/MyProject coordinator --batch-size 64",
		run:     func(cmd *cobra.Command, _ []string) error { return a.coordinate(cmd.Context()) },
	})
}

// coordinate serves until ctx ends, which is how it normally ends.
func (a *app) coordinate(ctx context.Context) (err error) {
	storage, prefix, err := a.prefix()
	if err != nil {
		return err
	}
	s, err := a.openPlace(ctx, storage, prefix, kindCoordinator, coord.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	defer a.slow.begin()()
	me, leave, err := a.join(ctx, s, member(kindCoordinator))
	if err != nil {
		return err
	}
	defer leave()
	c := coord.New(s.store, s.scheduler, a.coordinatorOptions(s, me.ID()))
	a.log.Info("coordinator runs", obs.KeyPrefix, s.place, obs.KeyVersion, version())
	serving, done := s.whilePresent(ctx)
	err = c.Serve(serving)
	lost := done()
	a.log.Info("coordinator stopped", obs.KeyPrefix, s.place)
	return errors.Join(lost, err)
}

func (a *app) coordinatorOptions(s *session, holder string) coord.Options {
	v := a.values
	if v.Bool(config.NoLease) {
		holder = ""
	}
	return coord.Options{
		Prefix: s.place, Queues: v.Text(config.Queues), Inbox: s.inbox, Holder: holder, Logger: a.log,
		BatchSize: v.Int(config.BatchSize), Visibility: v.Duration(config.InboxVisibility), IdleSleep: v.Duration(config.IdleSleep),
		FlushRetryLimit: v.Int(config.FlushRetryLimit), SweepInterval: v.Duration(config.SweepInterval),
		RepairThreshold: v.Duration(config.RepairThreshold), RunningRepair: v.Duration(config.RunningRepair),
	}
}

// join announces this process and keeps saying so until the returned function is
// called, which also takes the announcement back.
func (a *app) join(ctx context.Context, s *session, m port.Member) (port.Membership, func(), error) {
	me, err := s.store.Presence.Join(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		for sleep(beating, presenceBeat) == nil {
			if err := me.Beat(beating, 0); err != nil {
				a.log.Warn("presence not refreshed", obs.KeyError, err)
			}
		}
	})
	return me, func() {
		stop()
		wg.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
		if err := me.Leave(last); err != nil {
			a.log.Warn("presence not taken back", obs.KeyError, err)
		}
	}, nil
}
