package cli

import (
	"cmp"
	"fmt"
	"strings"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/internal/config"
	"jobq/store"
)

// splitPlace takes the words in front of the verb: "workflow" and STORAGE/PREFIX,
// each optional. It returns the place and the rest, flags of the front included.
func splitPlace(args []string) (place string, rest []string, err error) {
	var front []string
	sawWorkflow := false
	i := 0
scan:
	for ; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			break scan
		case strings.HasPrefix(word, "-"):
			front = append(front, word)
			if takesValue(word) && i+1 < len(args) {
				i++
				front = append(front, args[i])
			}
		case word == "workflow" && !sawWorkflow && place == "":
			sawWorkflow = true
		case strings.Contains(word, "/"):
			if place != "" {
				return "", nil, usageError("", "%q and %q both stand where STORAGE/PREFIX belongs", place, word)
			}
			place = word
		default:
			break scan
		}
	}
	if place != "" && i == len(args) && !wantsHelp(front) {
		return "", nil, fault.Newf(fault.Invalid, "no verb follows %q", place).
			WithRemedy(fmt.Sprintf("to look at that prefix: `jobq %[1]s list`; to run a file: `jobq run %[1]s`", place))
	}
	return place, append(front, args[i:]...), nil
}

// takesValue reports whether the word after the flag belongs to it.
func takesValue(flag string) bool {
	for _, s := range config.Settings() {
		if flag == "--"+s.Name {
			return s.HasFlag(config.Everywhere) && s.Kind != config.Switch && s.Name != config.Verbose
		}
	}
	return false
}

func wantsHelp(flags []string) bool {
	for _, f := range flags {
		if f == "--help" || f == "-h" {
			return true
		}
	}
	return false
}

// prefix returns the STORAGE and PREFIX that the call is about.
func (a *app) prefix() (storage, prefix string, err error) {
	v := a.values.Get(config.Prefix)
	text, source := cmp.Or(a.place, v.Text), v.Source
	if a.place != "" {
		source = "STORAGE/PREFIX"
	} else if source == config.FromDefault {
		if a.values.Bool(config.RequirePrefix) {
			return "", "", fault.New(fault.Invalid, "no STORAGE/PREFIX is given, and JOBQ_REQUIRE_PREFIX forbids to assume one").
				WithRemedy("put STORAGE/PREFIX in front of the verb, or set JOBQ_WORKFLOW_PREFIX")
		}
		if a.tellPlace || a.values.Int(config.Verbose) > 0 {
			a.note("using %s", text)
		}
	}
	storage, prefix, err = parsePlace(source, "PREFIX", text)
	if err == nil {
		err = dag.CheckPrefix(prefix)
	}
	return storage, prefix, err
}

// parsePlace cuts "storage/name" into its two parts.
func parsePlace(source, kind, text string) (storage, name string, err error) {
	if strings.ContainsAny(text, ";=") || strings.Contains(text, "://") && !strings.HasPrefix(text, "sb://") {
		// It may hold a key: the text is not repeated.
		return "", "", fault.Newf(fault.Invalid, "%s: this looks like a connection string or an address", source).
			WithRemedy("write the name of the account and a slash, such as myaccount/MyProject; connection strings come from the environment")
	}
	at := strings.LastIndex(text, "/")
	if at <= 0 || at == len(text)-1 || strings.Contains(strings.TrimPrefix(text[:at], "sb://"), "/") {
		example := "default"
		if kind == "QUEUE" && dag.CheckQueue(text) == nil {
			example = text
		}
		return "", "", fault.Newf(fault.Invalid, "%s: %q is not of the form STORAGE/%s", source, text, kind).
			WithRemedy("write it as in " + store.Local + "/" + example)
	}
	return text[:at], text[at+1:], nil
}

// note tells people something on stderr, unless they want to be left alone.
func (a *app) note(format string, args ...any) {
	if !a.quiet() {
		fmt.Fprintf(a.err, "jobq: "+format+"\n", args...)
	}
}
