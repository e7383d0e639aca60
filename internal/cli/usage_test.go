package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/internal/config"
)

// commands returns every command of jobq that help shows.
func commands(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		all = append(all, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app{}))
	return all
}

// TestUsage pins what help says. Run with -update after a wanted change.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range commands(t) {
		words := strings.Fields(c.CommandPath())
		t.Run(strings.Join(words, "-"), func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if code := Main(t.Context(), nil, append(words[1:], "--help"), nil, &stdout, &stderr, nil); code != exitDone {
				t.Fatalf("%s --help = exit code %d, stderr %q", c.CommandPath(), code, stderr.String())
			}
			golden(t, filepath.Join("testdata", "usage", strings.Join(words, "-")+".golden"), stdout.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// TestSettingsAndFlagsAgree holds the table of settings to the verbs.
func TestSettingsAndFlagsAgree(t *testing.T) {
	t.Parallel()
	verbs := map[string]*cobra.Command{}
	for _, c := range newRoot(&app{}).Commands() {
		verbs[c.Name()] = c
	}
	for _, s := range config.Settings() {
		for _, verb := range slices.Concat(s.Verbs, s.Readers) {
			if verb == config.Everywhere {
				continue
			}
			c, ok := verbs[verb]
			if !ok {
				t.Errorf("setting %s belongs to %q, which is no verb", s.Name, verb)
			} else if s.HasFlag(verb) && c.Flags().Lookup(s.Name) == nil {
				t.Errorf("%s has no flag --%s", verb, s.Name)
			}
		}
	}
}

// TestEveryFlagIsDocumented holds docs/cli.md to the verbs.
func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	doc := readDocument(t, "cli.md")
	for _, c := range commands(t) {
		path := strings.TrimPrefix(c.CommandPath(), "jobq ")
		if c.Runnable() && !c.HasSubCommands() && !strings.Contains(doc, "`jobq "+path) {
			t.Errorf("docs/cli.md does not show `jobq %s`", path)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(doc, "--"+f.Name) {
				t.Errorf("docs/cli.md does not mention --%s of %s", f.Name, path)
			}
			if strings.ContainsAny(f.Usage, "\t\n") || f.Usage == "" {
				t.Errorf("the usage of --%s of %s is empty or has tabs or lines", f.Name, path)
			}
		})
	}
	for _, code := range []string{"`0`", "`1`", "`2`", "`3`", "`4`", "`5`", "`6`", "`70`", "`130`"} {
		if !strings.Contains(doc, code) {
			t.Errorf("docs/cli.md does not explain exit code %s", code)
		}
	}
}

// TestEveryJSONFieldIsDocumented holds docs/cli-json.md to the types that are
// printed.
func TestEveryJSONFieldIsDocumented(t *testing.T) {
	t.Parallel()
	doc := readDocument(t, "cli-json.md")
	answers := []any{
		coord.Summary{}, coord.Move{}, validateReport{}, listAnswer{}, tasksAnswer{}, whyAnswer{}, commandAnswer{}, summaryAnswer{},
		doctorAnswer{}, conditionAnswer{}, settingView{},
	}
	seen := map[reflect.Type]bool{}
	for _, a := range answers {
		for _, field := range jsonFields(reflect.TypeOf(a), seen) {
			if !strings.Contains(doc, "`"+field+"`") {
				t.Errorf("docs/cli-json.md does not explain the field `%s` of an answer", field)
			}
		}
	}
}

func jsonFields(t reflect.Type, seen map[reflect.Type]bool) []string {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
		if name != "" || f.Anonymous {
			names = append(names, jsonFields(f.Type, seen)...)
		}
	}
	return names
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestEveryAnswerIsTriedWhereItCannotBeWritten holds the script full.txtar to the verbs.
func TestEveryAnswerIsTriedWhereItCannotBeWritten(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join("testdata", "script", "full.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	silent := []string{"watch", "coordinator", "worker", "output set"} // they have no answer
	for _, c := range commands(t) {
		path := strings.TrimPrefix(c.CommandPath(), "jobq ")
		tried := strings.Contains(string(script), "sh full.sh "+path+" ") || strings.Contains(string(script), "sh full.sh "+path+"\n")
		if c.HasParent() && c.Runnable() && !c.HasSubCommands() && !tried && !slices.Contains(silent, path) {
			t.Errorf("full.txtar does not try `jobq %s`", path)
		}
	}
}

func TestExitCodeOfEveryFault(t *testing.T) {
	t.Parallel()
	want := map[fault.Code]int{
		fault.Internal: 70, fault.Invalid: 2, fault.NotFound: 3, fault.Exists: 4, fault.Conflict: 4, fault.TooLarge: 2, fault.Throttled: 5,
		fault.Unavailable: 5, fault.Denied: 5, fault.LeaseLost: 4, fault.Canceled: 5, fault.Corrupt: 5, fault.TooNew: 5,
	}
	for _, code := range fault.Codes() {
		if got, ok := want[code]; !ok || exitCode(code) != got {
			t.Errorf("exitCode(%v) = %d, want %d (listed: %t)", code, exitCode(code), got, ok)
		}
	}
}
