package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/spec"
	"jobq/internal/config"
	"jobq/internal/obs"
)

func newSubmit(a *app) *cobra.Command {
	var id string
	cmd := a.command(verb{
		use: "submit [FILE...]", short: "Submit workflows for coordinators and workers to run", group: groupCommand, most: -1,
		long: `Submit workflows; a coordinator and workers, running as processes of their own, run them. The ids are
printed one a line in the order of the files. Without FILE the names are read from standard input,
one a line. A repeat under the same id is harmless.`,
		example: "  jobq submit pipeline.yaml --id nightly-7\n  find workflows -name '*.yaml' | jobq submit",
		run: func(cmd *cobra.Command, files []string) error {
			if err := emptyFlag(cmd, "id"); err != nil {
				return err
			}
			if len(files) == 0 {
				var err error
				if files, err = a.fileNames(); err != nil {
					return err
				}
			}
			if id != "" && len(files) != 1 {
				return usageError("submit", "--id names one workflow, but there are %s", count(len(files), "file"))
			}
			return a.withKind(cmd.Context(), kindSubmit, func(s *session) error {
				if err := a.submit(cmd.Context(), s, files, id); err != nil {
					return err
				}
				a.noteCoordinator(cmd.Context(), s)
				return nil
			})
		},
	})
	cmd.Flags().StringVar(&id, "id", "", "call the workflow `ID` instead of by the time")
	return cmd
}

// fileNames reads names of files from standard input, one a line.
func (a *app) fileNames() ([]string, error) {
	if _, ok := terminalInput(a.in); ok {
		return nil, usageError("submit", "no file is given")
	}
	var files []string
	scanner := bufio.NewScanner(a.in)
	for scanner.Scan() {
		if name := strings.TrimSpace(scanner.Text()); name != "" {
			files = append(files, name)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "standard input cannot be read")
	}
	if len(files) == 0 {
		return nil, usageError("submit", "no file is given, neither as an argument nor on standard input")
	}
	return files, nil
}

// submission is one file on its way.
type submission struct {
	id   string
	err  error
	done chan struct{}
}

// submit submits files, some at a time, and prints their ids in order, each as
// soon as it and those before it are accepted. One file that is refused does not
// stop the others.
func (a *app) submit(ctx context.Context, s *session, files []string, id string) error {
	all := make([]submission, len(files))
	for i := range all {
		all[i].done = make(chan struct{})
	}
	var accepted atomic.Int64
	view := a.newScreen(a.submitRegion(&accepted, len(files)))
	var wg sync.WaitGroup
	slots := make(chan struct{}, a.values.Int(config.SubmitConcurrency))
	wg.Go(func() {
		for i := range all {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				all[i].id, all[i].err = a.submitFile(ctx, s, view, files[i], id)
				accepted.Add(1)
				close(all[i].done)
			})
		}
	})
	var errs []error
	for i := range all {
		<-all[i].done
		if all[i].err != nil {
			errs = append(errs, all[i].err)
			continue
		}
		view.add(false, []byte(all[i].id+"\n"))
	}
	wg.Wait()
	view.close()
	if view.untold != nil {
		errs = append(errs, unwritten(view.untold))
	}
	return errors.Join(errs...)
}

func (a *app) submitRegion(accepted *atomic.Int64, total int) func(int, int) []string {
	if total < 2 || a.quiet() {
		return nil
	}
	return func(int, int) []string {
		n := int(accepted.Load())
		return []string{fmt.Sprintf("%s %d/%d submitted", bar(n, total, 20), n, total)}
	}
}

func (a *app) submitFile(ctx context.Context, s *session, view *screen, file, id string) (string, error) {
	d, err := a.acceptTo(ctx, file, spec.Note, func(text string) { view.add(true, []byte(text)) })
	if err != nil {
		return "", err
	}
	if id == "" {
		id = newID(time.Now(), submitRandom)
	}
	answer, err := s.Submit(ctx, coord.Submission{ID: id, Definition: d, By: a.user()})
	if err != nil {
		return "", err
	}
	if answer.Already && !a.quiet() {
		view.printf("jobq: %s: workflow %s was already submitted", file, id)
	}
	return id, nil
}

// noteCoordinator tells where nobody would run what was submitted. It is accepted,
// whether or not that can be found out.
func (a *app) noteCoordinator(ctx context.Context, s *session) {
	members, err := s.store.Presence.Members(ctx)
	switch {
	case err != nil:
		a.log.Warn("it cannot be seen whether a coordinator is running", obs.KeyError, err)
	case !hasKind(members, kindCoordinator):
		a.note("no coordinator is running: start one with `%s`", a.commandLine("coordinator"))
	}
}
