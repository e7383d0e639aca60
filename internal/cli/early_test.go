package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/sched"
	"jobq/internal/local"
	"jobq/store"
)

// TestAStopBeforeTheRunIsSeenSaysHowItStands: there is not always something to go on
// with, and never an answer without content.
func TestAStopBeforeTheRunIsSeenSaysHowItStands(t *testing.T) {
	t.Parallel()
	one := commandsOf("one")
	for name, tc := range map[string]struct {
		stored *dag.Definition
		held   bool
		retry  bool
		says   []string
		json   string
	}{
		"not submitted": {nil, false, false, []string{"jobq: interrupted; nothing was submitted"}, ""},
		"another of that name is": {commandsOf("one", "two"), false, false,
			[]string{"jobq: interrupted; nothing was submitted"}, ""},
		"submitted": {one, false, false,
			[]string{"jobq: stopped; 0 of 1 task ended, nothing is lost", "  go on: jobq run --resume w1 --home HOME"}, `"stopped":true`},
		"another process has it": {one, true, false,
			[]string{fmt.Sprintf("jobq: interrupted; run w1 goes on: process %d on elsewhere has it", os.Getpid()), "  follow it: jobq watch w1 --home HOME"}, `"status":"running"`},
		"to be retried, but it is not there any more": {nil, false, true,
			[]string{"jobq: interrupted; how run w1 stands cannot be seen: workflow w1 does not exist", "  look again: jobq status w1 --home HOME"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			var stdout, stderr bytes.Buffer
			a := &app{out: &stdout, err: &stderr}
			if err := a.configure("run", map[string]string{"home": home, "quiet": "true"}, false); err != nil {
				t.Fatal(err)
			}
			if tc.stored != nil {
				storeRun(t, home, tc.stored, tc.held)
			}
			o, err := a.localOptions(runFlags{})
			if err != nil {
				t.Fatal(err)
			}
			o.WorkflowID, o.Retry = "w1", tc.retry
			if !tc.retry {
				o.Definition = one
			}
			stopped, stop := context.WithCancel(t.Context())
			stop()
			err = a.execute(stopped, o, newProgress([]string{"one"}, time.Now()), runFlags{json: true})
			if err != ended(exitInterrupted) {
				t.Errorf("execute = %v, want that it was interrupted", err)
			}
			for _, want := range tc.says {
				if said := strings.ReplaceAll(stderr.String(), home, "HOME"); !strings.Contains(said, want+"\n") {
					t.Errorf("standard error is %q, want %q in it", said, want)
				}
			}
			if tc.json == "" != (stdout.Len() == 0) || !strings.Contains(stdout.String(), tc.json) {
				t.Errorf("standard output is %q, want an object with %q, or none", stdout.String(), tc.json)
			}
		})
	}
}

// commandsOf returns a workflow of tasks of these names.
func commandsOf(names ...string) *dag.Definition {
	d := &dag.Definition{Name: "some"}
	for _, name := range names {
		d.Tasks = append(d.Tasks, dag.Task{Name: name, Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}})
	}
	return d
}

// storeRun submits a run w1, and if it is held, to a process elsewhere that has it.
func storeRun(t *testing.T, home string, d *dag.Definition, held bool) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Location{Storage: store.Local, Prefix: "default"}, store.Options{Home: home, Kind: kindRun})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	submission := coord.Submission{ID: "w1", Definition: d, Namespace: "default/w1/"}
	if _, err := coord.New(s, sched.Real{}, coord.Options{}).Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
	if !held {
		return
	}
	m := member(kindRun)
	m.Host = "elsewhere"
	other, err := s.Presence.Join(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Leases.Acquire(t.Context(), local.Lease("w1"), other.ID(), time.Hour); err != nil {
		t.Fatal(err)
	}
}
