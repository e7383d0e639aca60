package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/internal/config"
)

const (
	groupRun     = "run"
	groupLook    = "look"
	groupCommand = "command"
	groupService = "service"
	groupFile    = "file"
	groupTask    = "task"
)

const rootHelp = `jobq runs workflows of shell tasks, and goes on after any crash.

  jobq run FILE          run a workflow on this machine
  jobq list              what ran, newest first

STORAGE/PREFIX in front of the verb chooses the installation; without it
JOBQ_WORKFLOW_PREFIX does, and without that it is local/default, kept in JOBQ_HOME.`

// newRoot builds the command tree of one call.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use: "jobq [STORAGE/PREFIX] VERB", Short: "Run workflows of shell tasks", Long: rootHelp,
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Version = version()
	root.SetVersionTemplate("jobq {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this program")
	root.RunE = func(cmd *cobra.Command, args []string) error { return noVerb(cmd, args) }
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return flagError(cmd, err)
	})
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run on this machine:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupCommand, Title: "Change:"},
		&cobra.Group{ID: groupService, Title: "Run as services:"},
		&cobra.Group{ID: groupFile, Title: "Files and settings:"},
		&cobra.Group{ID: groupTask, Title: "Inside a task:"},
	)
	addSettings(root.PersistentFlags(), config.Everywhere)
	for _, verb := range verbs(a) {
		root.AddCommand(verb)
		a.addCompletion(verb)
	}
	root.SetHelpCommand(&cobra.Command{
		Use: "help [VERB]", Short: "Show how a verb is called", Long: "Show how a verb is called; jobq VERB --help does the same.", GroupID: groupFile,
		Args: cobra.ArbitraryArgs, RunE: func(_ *cobra.Command, args []string) error { return helpOn(root, args) },
	})
	root.SetUsageTemplate(usageTemplate(root))
	return root
}

// helpOn prints the help of the verb that words name.
func helpOn(root *cobra.Command, words []string) error {
	c, rest, err := root.Find(words)
	if err != nil || len(rest) > 0 {
		return noVerb(root, words)
	}
	return c.Help()
}

// usageTemplate is that of package cobra with the words of jobq.
func usageTemplate(root *cobra.Command) string {
	return strings.NewReplacer(
		"{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]{{end}}", "",
		"{{.UseLine}}{{end}}", "{{if and .HasParent .HasAvailableSubCommands}}{{.CommandPath}} VERB{{else}}{{.UseLine}}{{end}}{{end}}",
		"{{.CommandPath}} [command] --help", "{{.CommandPath}} VERB --help",
		"more information about a command", "more about one",
	).Replace(root.UsageTemplate())
}

// verb builds one command. run is called with its settings resolved.
type verb struct {
	use, short, long, example string
	group                     string
	hidden                    bool
	// service says that the verb logs what happens by itself, as nobody watches.
	service bool
	// least and most bound the words after the verb; most < 0 is any number.
	least, most int
	run         func(cmd *cobra.Command, args []string) error
}

func (a *app) command(v verb) *cobra.Command {
	cmd := &cobra.Command{
		Use: v.use, Short: v.short, Long: cmp.Or(v.long, v.short+"."), Example: v.example, GroupID: v.group, Hidden: v.hidden,
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, v.least, v.most) },
	}
	addSettings(cmd.Flags(), verbName(v.use))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.configure(topVerb(cmd), settingFlags(cmd), v.service); err != nil {
			return err
		}
		a.tellPlace = v.group == groupCommand || v.group == groupService
		return v.run(cmd, args)
	}
	return cmd
}

func verbName(use string) string {
	name, _, _ := strings.Cut(use, " ")
	return name
}

// topVerb returns the word after "jobq", by which settings know their verbs.
func topVerb(cmd *cobra.Command) string {
	first, _, _ := strings.Cut(verbOf(cmd), " ")
	return first
}

func verbOf(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "jobq"))
}

// settingValue is a flag that keeps its text; internal/config reads it.
type settingValue struct {
	text string
	kind config.Kind
}

func (v *settingValue) String() string { return v.text }

func (v *settingValue) Type() string { return v.kind.String() }

func (v *settingValue) Set(text string) error {
	v.text = text
	return nil
}

// addSettings adds the flags that verb has; those of every verb are the root's.
func addSettings(flags *pflag.FlagSet, verb string) {
	for _, s := range config.Settings() {
		if s.HasFlag(config.Everywhere) != (verb == config.Everywhere) || !s.HasFlag(verb) {
			continue
		}
		// Package pflag reads backquotes as the name of the value.
		usage := strings.ReplaceAll(s.Doc, "`", "") + " (" + s.Env[0] + ")"
		if s.Name == config.Verbose {
			flags.CountP(s.Name, s.Letter, usage)
			continue
		}
		f := flags.VarPF(&settingValue{text: s.DefaultFor(verb), kind: s.Kind}, s.Name, s.Letter, usage)
		if s.Kind == config.Switch {
			f.NoOptDefVal = "true"
		}
	}
}

// settingFlags returns the settings that were given as flags.
func settingFlags(cmd *cobra.Command) map[string]string {
	given := map[string]string{}
	known := config.Settings()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.ContainsFunc(known, func(s config.Setting) bool { return s.Name == f.Name && (s.HasFlag(topVerb(cmd))) }) {
			given[f.Name] = f.Value.String()
		}
	})
	return given
}

func checkArgs(cmd *cobra.Command, args []string, least, most int) error {
	verb := verbOf(cmd)
	if most >= 0 && len(args) > most && slices.ContainsFunc(args, isPlace) {
		return misplaced(verb, args)
	}
	switch {
	case len(args) < least:
		return usageError(verb, "%s is missing: %s", missingWord(cmd.Use, len(args)), withoutFlags(cmd))
	case most >= 0 && len(args) > most:
		return usageError(verb, "%q is one word too many: %s", args[most], withoutFlags(cmd))
	}
	return nil
}

// missingWord returns the n-th word that the usage of a verb asks for.
func missingWord(use string, n int) string {
	words := strings.Fields(use)[1:]
	return strings.TrimSuffix(words[min(n, len(words)-1)], "...")
}

func withoutFlags(cmd *cobra.Command) string {
	line := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	return strings.TrimPrefix(line, "jobq ")
}

// isPlace reports whether word can be STORAGE/PREFIX, which most names of files
// with a slash cannot.
func isPlace(word string) bool {
	storage, prefix, err := parsePlace("", "", word)
	return err == nil && !strings.HasPrefix(storage, ".") && dag.CheckPrefix(prefix) == nil
}

// misplaced is STORAGE/PREFIX behind the verb.
func misplaced(verb string, args []string) error {
	at := slices.IndexFunc(args, isPlace)
	rest := slices.Concat([]string{"jobq", args[at], verb}, args[:at], args[at+1:])
	return fault.Newf(fault.Invalid, "%q stands behind the verb", args[at]).
		WithRemedy("STORAGE/PREFIX goes in front of it: `" + strings.Join(rest, " ") + "`")
}

// otherVerb returns our verb for a word of other programs, or "".
func otherVerb(word string) string {
	switch word {
	case "ls", "ps":
		return "list"
	case "rm", "delete":
		return "purge"
	case "stop", "kill":
		return "cancel"
	case "start":
		return "run"
	case "resume":
		return "run --resume"
	case "log":
		return "logs"
	case "show":
		return "status"
	case "describe", "explain":
		return "why"
	case "check", "lint":
		return "validate"
	}
	return ""
}

// flagError answers a flag that cannot be read.
func flagError(cmd *cobra.Command, err error) error {
	usage := usageError(verbOf(cmd), "%s", err.Error())
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if best := nearest(unknown.GetSpecifiedName(), flagNames(cmd)); best != "" {
			return usage.WithRemedy("did you mean --" + best + "? " + fault.RemedyOf(usage))
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usageError(verbOf(cmd), "--%s: %q is no %s", invalid.GetFlag().Name, invalid.GetValue(), kindWord(invalid.GetFlag().Value.Type()))
	}
	return usage
}

// emptyFlag refuses flags of names that were given and hold nothing: a variable of
// the shell that is not set would mean another workflow, or a new one.
func emptyFlag(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return fault.Newf(fault.Invalid, "--%s is empty", name).WithRemedy("is a variable of the shell not set?")
		}
	}
	return nil
}

// flagNames returns the names of the flags that cmd takes.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// kindWord is the word for people for a type of package pflag.
func kindWord(kind string) string {
	switch kind {
	case "int", "uint32", "uint64", "count":
		return "whole number"
	case "float64":
		return "number"
	case "bool":
		return "true or false"
	case "duration":
		return "duration such as 90s or 1h30m"
	default:
		return kind
	}
}

// noVerb answers a call whose first word is no verb.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := usageError("", "%q is not a verb of jobq", args[0])
	if known := otherVerb(args[0]); known != "" {
		return err.WithRemedy("did you mean `jobq " + known + "`? `jobq --help` lists the verbs")
	}
	best := ""
	nearest := 0
	for _, c := range cmd.Commands() {
		if d, near := dag.Near(args[0], c.Name()); near && !c.Hidden && (best == "" || d < nearest) {
			best, nearest = c.Name(), d
		}
	}
	if best != "" {
		return err.WithRemedy(fmt.Sprintf("did you mean `jobq %s`? `jobq --help` lists the verbs", best))
	}
	return err.WithRemedy("`jobq --help` lists the verbs; to run a file: `jobq run " + shellQuote(args[0]) + "`")
}
