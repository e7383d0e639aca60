package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/internal/config"
	"jobq/internal/local"
	"jobq/store"
	"jobq/worker/proc"
)

// runFlags are the flags of verbs that run a workflow here.
type runFlags struct {
	id, resume, cwd string
	json            bool
}

// addCwd adds the flag that says where a run is.
func (f *runFlags) addCwd(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cwd, "cwd", "", "run in `DIR`, from now on: the directory of a run that is resumed may have moved")
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := a.command(verb{
		use: "run FILE", short: "Run a workflow on this machine, to the end", group: groupRun, most: 1,
		long: `Run a workflow on this machine, to the end: nothing else needs to be installed or running. What tasks
write is shown with their names in front. Ctrl-C stops cleanly and says how to go on, a second one
kills; after either, and after any crash, --resume goes on where it stopped. FILE may be -, for
standard input.`,
		example: "  jobq run pipeline.yaml\n  jobq run pipeline.yaml --id nightly-7 --workers 4\n  jobq run --resume nightly-7",
		run: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "id", "resume", "cwd"); err != nil {
				return err
			}
			switch {
			case f.resume != "" && (len(args) > 0 || f.id != ""):
				return usageError("run", "--resume goes on with the workflow as it was submitted: it takes neither FILE nor --id")
			case f.resume != "":
				if err := workflowID(cmd, f.resume); err != nil {
					return err
				}
				return a.resume(cmd.Context(), f.resume, false, f)
			case len(args) == 0:
				return usageError("run", "something is missing: run FILE, or run --resume ID")
			default:
				return a.run(cmd.Context(), args[0], f)
			}
		},
	})
	cmd.Flags().StringVar(&f.id, "id", "", "call the run `ID` instead of by the time")
	cmd.Flags().StringVar(&f.resume, "resume", "", "go on with the run `ID` where it stopped")
	f.addCwd(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as one JSON object, the last line of standard output")
	return cmd
}

// run submits the workflow of a file and runs it.
func (a *app) run(ctx context.Context, file string, f runFlags) error {
	o, err := a.localOptions(f)
	if err != nil {
		return err
	}
	d, err := a.accept(ctx, file)
	if err != nil {
		return err
	}
	o.WorkflowID = cmp.Or(f.id, newID(time.Now(), runRandom))
	if err := dag.CheckWorkflowID(o.WorkflowID); err != nil {
		return err
	}
	o.Definition = d
	p := newProgress(taskNames(d), time.Now())
	if f.id != "" {
		if err := a.lookBack(ctx, o, p); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return a.execute(ctx, o, p, f)
}

// lookBack lets p begin with what the run has reached already.
func (a *app) lookBack(ctx context.Context, o local.Options, p *progress) error {
	return a.withPlace(ctx, store.Local, o.Prefix, func(s *session) error {
		now, err := s.loadState(ctx, o.WorkflowID)
		if err == nil && len(now.TaskStatus) == len(p.names) {
			p.load(now, time.Now())
		}
		return err
	})
}

// resume goes on with a run that stopped, after a retry if wanted.
func (a *app) resume(ctx context.Context, id string, retry bool, f runFlags) error {
	o, err := a.localOptions(f)
	if err != nil {
		return err
	}
	o.WorkflowID, o.Retry = id, retry
	var names []string
	err = a.withPlace(ctx, store.Local, o.Prefix, func(s *session) error {
		d, _, err := s.Definition(ctx, id)
		if err == nil {
			names = taskNames(d)
		}
		return s.propose(ctx, err)
	})
	if err != nil {
		return err
	}
	p := newProgress(names, time.Now())
	if err := a.lookBack(ctx, o, p); err != nil {
		return err
	}
	return a.execute(ctx, o, p, f)
}

// localOptions returns what every run of this machine has in common.
func (a *app) localOptions(f runFlags) (local.Options, error) {
	storage, prefix, err := a.prefix()
	if err != nil {
		return local.Options{}, err
	}
	if storage != store.Local {
		return local.Options{}, fault.Newf(fault.Invalid, "this verb runs tasks on this machine, in the storage %q; %q is another one", store.Local, storage).
			WithRemedy("leave STORAGE/PREFIX away, or use `submit` there")
	}
	home, err := a.home()
	if err != nil {
		return local.Options{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return local.Options{}, fault.Wrap(fault.Invalid, err, "the present directory cannot be found")
	}
	moved := f.cwd
	if moved != "" && !filepath.IsAbs(moved) {
		moved = filepath.Join(dir, moved)
	}
	return local.Options{
		Home: home, Prefix: prefix, Workers: a.slots(cmp.Or(a.values.Int(config.Workers), runtime.NumCPU())), Dir: dir, Moved: moved,
		Version: version(), By: a.user(), Logger: a.log, KillTimeout: a.killTimeout(),
	}, nil
}

// slots returns how many tasks to run at a time: as many as are wished for, if the
// limits of this process allow it.
func (a *app) slots(wished int) int {
	most, limit := proc.MostCommands()
	if wished > most {
		a.note("%d tasks at a time need more %s; it is %d (%s)", wished, limit.On, most, limit.Raise)
	}
	return min(wished, most)
}

// The reasons for which a stop comes to no end.
var (
	errStuck  = fault.New(fault.Unavailable, "the store does not take what must be written")
	errUnread = fault.New(fault.Unavailable, "nobody reads what the run prints")
)

// execute runs o under a view and reports how it ended.
func (a *app) execute(ctx context.Context, o local.Options, p *progress, f runFlags) error {
	v := newRunView(a, o, p)
	o.OnChange, o.OnOutput, o.OnCommand, o.OnHeld = v.changed, v.output, p.command, v.held
	o.OnGivenBack, o.OnTrouble = v.givenBack, v.trouble
	o.OnBegun = func() { v.begun.Store(true) }
	stuck := make(chan error, 1)
	o.OnStuck = func(why error) { stuck <- why }
	defer ignoreBrokenPipes()()
	v.begin()
	killed := v.killed
	a.onKill.Store(&killed)
	end := a.slow.begin()
	r := v.carryOut(ctx, o, stuck)
	end()
	switch {
	case r.stuck != nil && ctx.Err() == nil:
		return homeRemedy(r.stuck)
	case r.stuck != nil:
		v.overdue(r.stuck)
		return ended(exitInterrupted)
	case r.unread:
		v.unread()
		return ended(exitInterrupted)
	}

	sum, err := r.sum, r.err
	interrupted := fault.Is(err, fault.Canceled) && ctx.Err() != nil
	if err != nil && !interrupted {
		if o.Retry {
			err = a.commandError(o.WorkflowID, err)
		}
		return runRemedy(err)
	}
	if interrupted && sum.WorkflowID == "" {
		return a.interruptedEarly(ctx, o, v, f)
	}
	if interrupted {
		v.interrupted(sum)
	} else if err := a.report(context.WithoutCancel(ctx), o.Prefix, sum, v.resumed); err != nil {
		return err
	}
	if f.json {
		sum.Stopped = interrupted
		if err := printJSON(a.out, sum); err != nil {
			return err
		}
	}
	if interrupted {
		return ended(exitInterrupted)
	}
	return endedAs(sum)
}

// carriedOut is what became of a run.
type carriedOut struct {
	sum coord.Summary
	err error
	// stuck is why its end was not waited for, nil where it was.
	stuck error
	// unread says that nobody read its last lines.
	unread bool
}

// carryOut runs o and closes the view.
func (v *runView) carryOut(ctx context.Context, o local.Options, stuck <-chan error) carriedOut {
	unhook := context.AfterFunc(ctx, v.stopping)
	var r carriedOut
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.sum, r.err = local.Execute(ctx, o)
	}()
	select {
	case <-done:
		unhook()
		r.unread = !v.closeBefore(ctx)
		return r
	case why := <-stuck:
		// Nobody waits for Execute: the process ends now, its guardian ends the commands,
		// and what cannot be written down is begun again by the next process.
		if !v.closeWithin(lastLines) {
			why = cmp.Or[error](why, errUnread.WithRemedy("let whoever reads it go on, or print to a file, and go on with `"+v.resumeLine()+"`"))
		}
		return carriedOut{stuck: cmp.Or[error](why, errStuck)}
	}
}

// runRemedy gives the error of a run the remedy of homeRemedy, if it is one of the home.
func runRemedy(err error) error {
	if _, home := errors.AsType[local.HomeError](err); home {
		return homeRemedy(err)
	}
	return err
}

// How many random letters ids have: runs are started by hand, submissions by the
// hundred within a second.
const (
	runRandom    = 4
	submitRandom = 10
)

// newID returns an id that sorts by time and is new with near certainty.
func newID(now time.Time, random int) string {
	return now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:random])
}

func taskNames(d *dag.Definition) []string {
	names := make([]string, len(d.Tasks))
	for i := range d.Tasks {
		names[i] = d.Tasks[i].Name
	}
	return names
}

// withPlace is with for a place that is known already.
func (a *app) withPlace(ctx context.Context, storage, prefix string, f func(*session) error) (err error) {
	s, err := a.openPlace(ctx, storage, prefix, kindCommand, coord.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	return f(s)
}
