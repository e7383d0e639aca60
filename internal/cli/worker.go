package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/internal/config"
	"jobq/internal/obs"
	"jobq/worker"
	"jobq/worker/protocol"
)

var (
	errTimeLimit = errors.New("the time limit of the worker was reached")
	errFailures  = errors.New("too many tasks in a row failed")
)

func newWorker(a *app) *cobra.Command {
	return a.command(verb{
		use: "worker [STORAGE/QUEUE...]", short: "Run tasks of some queues until it is stopped", group: groupService, most: -1, service: true,
		long: `Run tasks of some queues until it is stopped with Ctrl-C or SIGTERM: running tasks then get SIGTERM and
are given back. It may be killed at any moment; its tasks die with it within a second. The queue is the
one that the workflow file names. Without STORAGE/QUEUE, JOBQ_STORAGE_QUEUE or JOBQ_QUEUE says it.`,
		example: "  jobq worker local/cpu local/gpu-a100 -n 4\n  jobq local/cpu worker --idle-timeout 5m",
		run: func(cmd *cobra.Command, args []string) error {
			if a.place != "" {
				args = slices.Insert(slices.Clone(args), 0, a.place)
				a.place = "" // of a worker it is a queue, not the prefix
			}
			storage, queues, err := a.workerQueues(args)
			if err != nil {
				return err
			}
			return a.work(cmd.Context(), storage, queues)
		},
	})
}

// workerQueues returns the storage and the queues that a worker serves.
func (a *app) workerQueues(args []string) (storage string, queues []string, err error) {
	source := "STORAGE/QUEUE"
	if len(args) == 0 {
		text, from, err := a.queueFromSettings()
		if err != nil {
			return "", nil, err
		}
		args, source = []string{text}, from
	}
	var errs []error
	for _, text := range args {
		s, q, err := parsePlace(source, "QUEUE", text)
		if err == nil {
			err = dag.CheckQueue(q)
		}
		if err == nil && storage != "" && s != storage {
			err = fault.Newf(fault.Invalid, "the queues are in two storages, %s and %s", storage, s).WithRemedy("start a worker for each")
		}
		errs = append(errs, err)
		storage = cmp.Or(storage, s)
		if !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	return storage, queues, errors.Join(errs...)
}

func (a *app) queueFromSettings() (text, source string, err error) {
	if v := a.values.Get(config.StorageQueue); v.Text != "" {
		return v.Text, v.Source, nil
	}
	queue := a.values.Get(config.Queue)
	if queue.Text == "" {
		return "", "", usageError("worker", "no queue is given, neither as STORAGE/QUEUE nor by JOBQ_STORAGE_QUEUE or JOBQ_QUEUE")
	}
	storage := a.values.Text(config.Storage)
	if storage == "" {
		if storage, _, err = a.prefix(); err != nil {
			return "", "", err
		}
	}
	return storage + "/" + queue.Text, queue.Source, nil
}

// work serves queues until ctx ends, which is how it normally ends.
func (a *app) work(ctx context.Context, storage string, queues []string) (err error) {
	prefixStorage, prefix, err := a.prefix()
	if err != nil {
		return err
	}
	if prefixStorage != storage {
		return fault.Newf(fault.Invalid, "the queues are in %s, but the prefix is %s/%s", storage, prefixStorage, prefix).
			WithRemedy("set JOBQ_WORKFLOW_PREFIX to the STORAGE/PREFIX whose tasks the worker is to run")
	}
	s, err := a.openPlace(ctx, storage, prefix, kindWorker, coord.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()

	present, done := s.whilePresent(ctx)
	defer func() { err = errors.Join(done(), err) }()
	serving, stop := context.WithCancelCause(present)
	defer stop(nil)
	if limit := a.values.Duration(config.TimeLimit); limit > 0 {
		var cancel context.CancelFunc
		serving, cancel = context.WithTimeoutCause(serving, limit, errTimeLimit)
		defer cancel()
	}
	var unwritten atomic.Int64
	w, err := worker.New(a.workerConfig(s, queues, a.observe(stop, &unwritten)))
	if err != nil {
		return err
	}
	defer a.slow.begin()()
	defer context.AfterFunc(serving, func() { a.sayStopping(serving) })()
	a.log.Info("worker runs", obs.KeyPrefix, s.place, obs.KeyQueue, queues, obs.KeyVersion, version())
	err = w.Run(serving)
	a.log.Info("worker stopped", "because", cmp.Or(causeText(serving), "nothing was left to do"))
	if n := int(unwritten.Load()); n > 0 {
		return errors.Join(unwrittenError(n), err)
	}
	if err == nil && errors.Is(context.Cause(serving), errFailures) {
		err = fault.Wrap(fault.Unavailable, errFailures, "the worker gave up").WithRemedy("look at the failed tasks: `jobq tasks --status failed`")
	}
	return err
}

// sayStopping says at the beginning of a stop how long it may take.
func (a *app) sayStopping(serving context.Context) {
	limit := "no limit"
	if d := a.endPatience(); d > 0 {
		limit = seconds(d)
	}
	a.log.Info("worker is stopping; a second signal kills", "because", causeText(serving), "at_most", limit)
}

// unwrittenError says that n commands ended and nobody will know.
func unwrittenError(n int) error {
	return fault.Newf(fault.Unavailable, "the worker stopped before the store took how %s ended", count(n, "command")).
		WithRemedy("nothing needs to be done about the tasks: they begin again; the log says what the store refused")
}

func causeText(ctx context.Context) string {
	if err := context.Cause(ctx); err != nil {
		return err.Error()
	}
	return ""
}

func (a *app) workerConfig(s *session, queues []string, onEvent func(protocol.Event)) worker.Config {
	v := a.values
	return worker.Config{
		Store: s.store, Prefix: s.place, Inbox: s.inbox, Queues: queues, Slots: v.Int(config.Slots), Logger: a.log,
		Visibility: v.Duration(config.TaskVisibility), KillTimeout: a.killTimeout(), IdleTimeout: v.Duration(config.IdleTimeout),
		MaxIdleBackoff: v.Duration(config.MaxIdleBackoff), CancelPollInterval: v.Duration(config.CancelPoll),
		CompletionSendMaxAttempts: v.Int(config.SendAttempts), OnEvent: onEvent, Output: a.logOutput, EndPatience: a.endPatience(),
	}
}

// killTimeout returns the setting in the words of package worker, where 0 is the
// default and never is below it.
func (a *app) killTimeout() time.Duration {
	if d := a.values.Duration(config.KillTimeout); d > 0 {
		return d
	}
	return -1
}

// writeTime is how long a worker that stops still tries to write down how commands
// ended, after the time that these have.
const writeTime = 10 * time.Second

// endPatience is how long after a stop the store may refuse how commands ended; 0
// is for ever.
func (a *app) endPatience() time.Duration {
	if d := a.killTimeout(); d > 0 {
		return d + writeTime
	}
	return 0
}

// logOutput shows what tasks write to those who want to see every step.
func (a *app) logOutput(l worker.OutputLine) {
	a.log.Debug(l.Line, obs.KeyWorkflow, l.Workflow, obs.KeyTask, l.Task, "stream", l.Stream)
}

// observe returns a function that logs what happens to attempts, stops the worker
// after too many failures in a row and counts what could not be written down.
func (a *app) observe(stop context.CancelCauseFunc, unwritten *atomic.Int64) func(protocol.Event) {
	limit := int64(a.values.Int(config.MaxFailures))
	var failures atomic.Int64
	return func(e protocol.Event) {
		log := a.log.With(obs.KeyQueue, e.Queue, obs.KeyWorkflow, e.Workflow, obs.KeyTask, e.Task, obs.KeyAttempt, e.Attempt, obs.KeyStart, e.Start)
		switch e.Kind {
		case protocol.Started:
			log.Info("task started")
		case protocol.Ended:
			ended := e.Completion
			if ended == nil {
				return
			}
			if ended.Success {
				log.Info("task ended", "success", true)
				failures.Store(0)
				return
			}
			log.Info("task ended", "success", false, "reason", string(ended.Reason), obs.KeyError, ended.Error)
			if n := failures.Add(1); limit > 0 && n > limit {
				stop(errFailures)
			}
		case protocol.GivenBack:
			log.Info("task given back", obs.KeyError, e.Err)
		case protocol.Unwritten:
			unwritten.Add(1)
			log.Error("the task ended, but the store did not take that; it begins again", obs.KeyError, e.Err)
		case protocol.Refused:
			a.log.Warn("message refused", obs.KeyQueue, e.Queue, obs.KeyError, e.Err)
		}
	}
}
