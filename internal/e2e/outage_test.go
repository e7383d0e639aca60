package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobq/internal/azurite"
)

// storm is an installation on an emulator of its own whose parts go away while
// coordinator and workers run, in the middle of a workflow.
type storm struct {
	*home
	server *azurite.Server
	prefix string
	// said is what coordinator and worker write on stderr, and how those ended that
	// nobody stopped.
	said *lines
	// started are they.
	started []program
}

type program struct {
	process *os.Process
	ended   chan struct{}
}

// lines collects what is written. Safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// chainLength is how many tasks the workflow of a storm has; the task atGate waits
// until the gate is opened.
const (
	chainLength = 20
	atGate      = 3
)

func newStorm(t *testing.T, prefix, dir string) *storm {
	t.Helper()
	own := azurite.Shared{Dir: dir}
	t.Cleanup(own.Close)
	s := &storm{home: newHome(t), server: own.Server(t), prefix: prefix, said: &lines{}}
	s.env = append(s.server.Env(), "JOBQ_WORKFLOW_PREFIX=devstoreaccount1/"+prefix)
	return s
}

// begin submits a chain and runs it up to its gate.
func (s *storm) begin() {
	s.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "name: storm\ndefault_queue: storm\ntasks:\n")
	for i := range chainLength {
		wait, parent := "sleep 0.1", ""
		if i == atGate {
			wait = "while [ ! -e gate ]; do sleep 0.1; done"
		}
		if i > 0 {
			parent = fmt.Sprintf(", depends_on: [t%d]", i-1)
		}
		fmt.Fprintf(&b, "- {name: t%d%s, kwargs: {cmd: \"echo t%d >>ran; %s\"}}\n", i, parent, i, wait)
	}
	s.mustRun(0, "submit", s.write("storm.yaml", b.String()), "--id", "storm", "--quiet")
	s.start("coordinator")
	s.start("worker", "--max-idle-backoff", "0.5", "devstoreaccount1/storm")
	s.until("the gate", func() bool { return len(s.lines("ran")) == atGate+1 })
}

// start runs a program until the test ends or the returned function is called.
func (s *storm) start(args ...string) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	cmd := s.command(ctx, args...)
	cmd.Stderr = s.said
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := program{cmd.Process, make(chan struct{})}
	go func() {
		defer close(p.ended)
		if err := cmd.Wait(); ctx.Err() == nil {
			fmt.Fprintf(s.said, "jobq %s ended by itself: %v\n", args[0], err)
		}
	}()
	s.started = append(s.started, p)
	stop = func() { cancel(); <-p.ended }
	s.t.Cleanup(stop)
	return stop
}

// last is what the programs said, with the stacks of those that still run. They end
// by it: it is for a test that has failed.
func (s *storm) last() string {
	for _, p := range s.started {
		if p.process.Signal(syscall.SIGQUIT) != nil {
			continue
		}
		select {
		case <-p.ended:
		case <-time.After(patience):
		}
	}
	return s.said.String()
}

func (s *storm) openGate() { s.write("gate", "") }

func (s *storm) until(what string, happened func() bool) {
	s.t.Helper()
	for begun := time.Now(); !happened(); <-time.After(100 * time.Millisecond) {
		if time.Since(begun) > patience {
			s.t.Fatalf("%s does not come; the programs said\n%s", what, s.last())
		}
	}
}

// hear waits until coordinator or worker say all of texts in one line.
func (s *storm) hear(texts ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("a line with %q", texts), func() bool {
		for line := range strings.Lines(s.said.String()) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return true
			}
		}
		return false
	})
}

// told runs a verb that must fail, in bounded time and saying texts.
func (s *storm) told(args []string, texts ...string) {
	s.t.Helper()
	begun := time.Now()
	r := s.mustRun(5, args...)
	if took := time.Since(begun); took > time.Minute {
		s.t.Errorf("jobq %v says what is wrong after %v, want less than a minute", args, took)
	}
	s.t.Logf("jobq %v:\n%s", args, r.stderr)
	for _, text := range append(texts, "next: ") {
		if !strings.Contains(r.stderr, text) {
			s.t.Errorf("jobq %v does not say %q:\n%s", args, text, r.stderr)
		}
	}
}

// end waits for the end of the workflow, of which nothing may be missing.
func (s *storm) end() {
	s.t.Helper()
	got := s.await("storm", patience)
	if got.Status != "completed" || got.Counts["completed"] != chainLength {
		s.t.Errorf("storm is %s with %v, want %d completed; the programs said\n%s", got.Status, got.Counts, chainLength, s.last())
	}
	runs := map[string]int{}
	for _, name := range s.lines("ran") {
		runs[name]++
	}
	if len(runs) != chainLength {
		s.t.Errorf("%d tasks ran, want %d", len(runs), chainLength)
	}
	s.t.Logf("%d runs of %d tasks", len(s.lines("ran")), chainLength)
}

// TestAnAccountThatIsAwayForAWhile stops the whole storage account. Everything
// goes on by itself when it is back, and a command says meanwhile what is wrong.
func TestAnAccountThatIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	away := 45 * time.Second
	if os.Getenv("JOBQ_SLOW_TESTS") != "" {
		away = 2 * time.Minute
	}
	s := newStorm(t, "Outage", "")
	s.begin()
	if err := s.server.Pause(); err != nil {
		t.Fatal(err)
	}
	back := time.After(away)
	s.openGate()
	s.told([]string{"list"}, "devstoreaccount1", "no answer")
	<-back
	if err := s.server.Resume(); err != nil {
		t.Fatal(err)
	}
	s.end()
}

// TestWrongCredentialsAreNamed shows what a person reads who has the wrong key.
func TestWrongCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	h := onAzurite(t, "Wrong")
	server := emulator.Server(t)
	h.env = append(h.env, "JOBQ_WORKFLOW_PREFIX=test0000/Wrong", "JOBQ_CONNECTION_STRING=AccountName=test0000;AccountKey=d3Jvbmc=;BlobEndpoint="+
		server.Blob+"/test0000;QueueEndpoint="+server.Queue+"/test0000;TableEndpoint="+server.Table+"/test0000")
	r := h.run("list")
	if r.code == 0 {
		t.Fatalf("list with a wrong key = exit 0\n%s", r.stdout)
	}
	for _, want := range []string{"test0000", "next: "} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("stderr does not say %q:\n%s", want, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "d3Jvbmc") {
		t.Errorf("stderr repeats the key:\n%s", r.stderr)
	}
}
