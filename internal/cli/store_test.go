package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobq/core/fault"
	"jobq/internal/local"
)

func TestOnlyAnErrorOfTheHomeIsForItsChoice(t *testing.T) {
	t.Parallel()
	const choose = "set JOBQ_HOME to a directory"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, inFile := local.Execute(t.Context(), local.Options{Home: filepath.Join(file, "home"), Prefix: "default", WorkflowID: "w1"})
	for name, tc := range map[string]struct {
		err   error
		other string
	}{
		"a home that cannot be made":    {inFile, ""},
		"a home that does not answer":   {local.HomeError{Cause: fault.New(fault.Unavailable, "the disk failed")}, ""},
		"a home that says what to do":   {local.HomeError{Cause: fault.New(fault.Unavailable, "busy").WithRemedy("wait")}, "wait"},
		"another thing of this machine": {fault.New(fault.Unavailable, "the running program cannot be found"), fault.Unavailable.Remedy()},
		"a right that is missing":       {fault.New(fault.Denied, "the command may not be begun"), fault.Denied.Remedy()},
		"a home of another kind":        {local.HomeError{Cause: fault.New(fault.TooNew, "version 99")}, fault.TooNew.Remedy()},
	} {
		got := fault.RemedyOf(runRemedy(tc.err))
		if tc.other == "" && !strings.HasPrefix(got, choose) || tc.other != "" && got != tc.other {
			t.Errorf("%s: the remedy of %q is %q", name, tc.err, got)
		}
	}
}
