package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobq/worker/taskapi"
)

// taskVerb builds a command that a task calls, perhaps thousands of times: it
// reads no settings and opens no store.
func (a *app) taskVerb(use, short string, least, most int, run func(t *taskapi.Task, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".",
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, least, most) },
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := taskapi.FromEnvironment(func(name string) string { return a.env[name] })
			if err != nil {
				return err
			}
			return run(t, args)
		},
	}
}

func newOutput(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "output", Short: "Leave the output of the task", GroupID: groupTask,
		Args: cobra.ArbitraryArgs, RunE: needsSubverb}
	set := a.taskVerb("set JSON|-", "Make one JSON document the output of this task; - reads it from standard input", 1, 1,
		func(t *taskapi.Task, args []string) error {
			in := io.Reader(strings.NewReader(args[0]))
			if args[0] == "-" {
				in = a.in
			}
			return t.SetOutput(in)
		})
	set.Example = "  jobq output set '{\"mae\": 0.03}'\n  python evaluate.py | jobq output set -"
	// A document may begin with a minus.
	set.FParseErrWhitelist.UnknownFlags = false
	set.DisableFlagParsing = true
	check := set.Args
	set.Args = func(cmd *cobra.Command, args []string) error {
		if wantsHelp(args) {
			return nil
		}
		return check(cmd, args)
	}
	run := set.RunE
	set.RunE = func(cmd *cobra.Command, args []string) error {
		if wantsHelp(args) {
			return cmd.Help()
		}
		return run(cmd, args)
	}
	cmd.AddCommand(set)
	return cmd
}

func newUpstream(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "upstream", Short: "Read the outputs of its parents", GroupID: groupTask,
		Args: cobra.ArbitraryArgs, RunE: needsSubverb}
	var asJSON bool
	get := a.taskVerb("get NAME [PATH]", "Print the output of a parent, or the part of it that PATH names", 1, 2,
		func(t *taskapi.Task, args []string) error {
			path := ""
			if len(args) == 2 {
				path = args[1]
			}
			value, err := t.Upstream(args[0], path)
			if err != nil {
				return err
			}
			if status, err := t.Status(args[0]); err == nil && status != taskapi.Completed && string(value) == "null" {
				fmt.Fprintf(a.err, "jobq upstream get: %q is %s: it has no output\n", args[0], status)
			}
			text := string(value)
			if !asJSON {
				text = taskapi.Text(value)
			}
			return a.print(text)
		})
	get.Long = `Print the output of a parent, or the part of it that PATH names: keys and positions with dots
between them. A text is printed without quotes; a parent without output prints null, one that failed
or was skipped too, and a note on standard error says so.`
	get.Example = "  jobq upstream get featurize\n  jobq upstream get train metrics.mae"
	get.Flags().BoolVar(&asJSON, "json", false, "print a text as JSON, with its quotes")
	list := a.taskVerb("list", "Print the names of the parents of this task, one a line, whatever became of them", 0, 0,
		func(t *taskapi.Task, _ []string) error {
			parents, err := t.Parents()
			if err != nil || len(parents) == 0 {
				return err
			}
			return a.print(strings.Join(parents, "\n"))
		})
	status := a.taskVerb("status [NAME]", "Print the status that a parent had when this task was sent, or that of every one", 0, 1,
		func(t *taskapi.Task, args []string) error { return a.printParentStatus(t, args) })
	status.Long = `Print the status that a parent had when this task was sent: completed, skipped, failed, upstream_failed
or cancelled, or another one if it had not ended. Without NAME one line for every parent: its status, a
tab, its name. With dep_policy all_settled, any or a number this tells what became of the parents.`
	status.Example = "  test \"$(jobq upstream status train)\" = completed || echo \"there is no model\""
	cmd.AddCommand(get, list, status)
	return cmd
}

func (a *app) printParentStatus(t *taskapi.Task, args []string) error {
	if len(args) == 1 {
		status, err := t.Status(args[0])
		if err != nil {
			return err
		}
		return a.print(status)
	}
	parents, err := t.Parents()
	if err != nil {
		return err
	}
	for _, parent := range parents {
		status, err := t.Status(parent)
		if err == nil {
			err = a.print(status + "\t" + parent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// needsSubverb answers a verb that is only the first half of one.
func needsSubverb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError(verbOf(cmd), "%q needs a second word", verbOf(cmd))
	}
	return usageError(verbOf(cmd), "%q does not go with %q", args[0], verbOf(cmd))
}

// print writes one answer and ends its line.
func (a *app) print(text string) error {
	if _, err := fmt.Fprintln(a.out, text); err != nil {
		return unwritten(err)
	}
	return nil
}
