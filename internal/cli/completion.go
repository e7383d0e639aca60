package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/port"
)

const (
	// completionBound is how long a key press waits for the store.
	completionBound = 2 * time.Second
	// maxProposed is how many names are proposed.
	maxProposed = 200
)

func newCompletion(a *app) *cobra.Command {
	return a.command(verb{
		use: "completion bash|zsh|fish", short: "Print what lets a shell complete words of jobq", group: groupFile, least: 1, most: 1,
		long: `Print a script that lets a shell complete verbs, flags, ids of workflows and names of tasks. For the
shell at hand: source <(jobq completion bash), the same with zsh; jobq completion fish | source. To
have it in each, put that into ~/.bashrc, ~/.zshrc (behind compinit) or ~/.config/fish/config.fish.
Bash needs its package bash-completion.`,
		example: "  source <(jobq completion bash)",
		run: func(cmd *cobra.Command, args []string) error {
			write := map[string]func(io.Writer) error{
				"bash": func(w io.Writer) error { return cmd.Root().GenBashCompletionV2(w, true) },
				"zsh":  cmd.Root().GenZshCompletion,
				"fish": func(w io.Writer) error { return cmd.Root().GenFishCompletion(w, true) },
			}[args[0]]
			if write == nil {
				return usageError("completion", "%q is none of bash, zsh and fish", args[0])
			}
			if err := write(a.out); err != nil {
				return unwritten(err)
			}
			return nil
		},
	})
}

// proposals are what a shell offers for a word, and whether names of files are
// among them.
type proposals = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// addCompletion lets shells complete the words and flags of cmd, whose usage says
// what they are.
func (a *app) addCompletion(cmd *cobra.Command) {
	cmd.ValidArgsFunction = a.completeWord
	for flag, p := range map[string]proposals{
		"resume": a.completeID, "workflow": a.completeID,
		"task": a.completeTask, "from": a.completeTask,
		"status": completeStatus,
	} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, p) // it refuses flags that are not there, and a repeat
		}
	}
}

// completeWord proposes what the usage of cmd wants in the place of its next word.
func (a *app) completeWord(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	words := strings.Fields(cmd.Use)[1:]
	if n := len(words); n > 0 && strings.Contains(words[n-1], "...") {
		for len(words) <= len(args) {
			words = append(words, words[n-1])
		}
	}
	if len(args) >= len(words) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	switch word := strings.Trim(words[len(args)], "[].*"); {
	case word == "ID":
		return a.completeID(cmd, args, begun)
	case word == "TASK":
		return a.completeTask(cmd, args, begun)
	case word == "FILE":
		return nil, cobra.ShellCompDirectiveDefault
	case strings.Contains(word, "|"):
		return strings.Split(word, "|"), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeID proposes ids of workflows, the newest first.
func (a *app) completeID(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	_ = a.propose(cmd, func(ctx context.Context, s *session) error {
		newest, _, err := s.List(ctx, port.Filter{Prefix: begun, Limit: maxProposed})
		for _, w := range newest {
			ids = append(ids, cobra.CompletionWithDesc(w.WorkflowID, line(w.Name)+", "+w.Status))
		}
		return err
	})
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeTask proposes tasks of the workflow that the first word names.
func (a *app) completeTask(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	_ = a.propose(cmd, func(ctx context.Context, s *session) error {
		sum, err := s.Tasks(ctx, args[0], coord.TaskFilter{Prefix: begun, Limit: maxProposed})
		for _, t := range sum.Tasks {
			names = append(names, cobra.CompletionWithDesc(t.Name, t.Status))
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeStatus proposes a further status behind a comma.
func completeStatus(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	words := workflowWords()
	if cmd.Name() == "tasks" {
		words = taskWords()
	}
	before := begun[:strings.LastIndexByte(begun, ',')+1]
	for i := range words {
		words[i] = before + words[i]
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// propose opens the store for f. Whoever presses a key cannot be told of errors:
// nothing is proposed then.
func (a *app) propose(cmd *cobra.Command, f func(context.Context, *session) error) error {
	if err := a.configure(topVerb(cmd), settingFlags(cmd), false); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), completionBound, fault.New(fault.Canceled, "the store took too long"))
	defer cancel()
	s, err := a.open(ctx, kindCommand)
	if err != nil {
		return err
	}
	defer s.store.Close()
	return f(ctx, s)
}
