package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jobq/worker/guard"
)

var update = flag.Bool("update", false, "rewrite golden files and generated documents")

// nobody is a user who owns nothing.
const nobody = 65534

// TestMain makes the test binary the program that the scripts call: it is
// started again as jobq and, by its workers, as their guardian.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Verb {
		os.Exit(guard.Main(os.Stdin, os.Stdout))
	}
	testscript.Main(m, map[string]func(){
		"jobq": func() {
			if os.Getenv("JOBQ_TEST_AS_NOBODY") != "" && os.Getuid() == 0 {
				// What root may not do it finds out too late.
				if err := errors.Join(syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
					panic(err)
				}
			}
			ctx, again, release := Signals(context.Background())
			code := Main(ctx, again, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
			release()
			os.Exit(code)
		},
	})
}

// TestScripts runs testdata/script: a script a verb, each with its own store.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("JOBQ_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("JOBQ_WORKFLOW_PREFIX", "local/test")
			e.Setenv("TZ", "UTC")
			// The race detector lets every process wait a second at its end.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "scrub": scrub},
	})
}

// exits CODE PROGRAM ARG... runs a program and wants that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// changing is what differs between two runs of one script.
var changing = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`"worker":"[^"]+"`), `"worker":"WORKER"`},
	{regexp.MustCompile(`"seconds":[0-9.e-]+`), `"seconds":0`},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b( +)?`), "DURATION$3"},
	{regexp.MustCompile(`on [^ "]+:\d+(/\d+)?`), "on WORKER"},
}

// scrub FROM TO copies a file, or stdout or stderr, without what changes.
func scrub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: scrub FROM TO")
	}
	text := ts.ReadFile(args[0])
	for _, c := range changing {
		text = c.form.ReplaceAllString(text, c.as)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}
