package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/store/local"
)

// The test program is also the other process: roleEnv says as what.
const (
	roleEnv = "JOBQ_TEST_ROLE"
	homeEnv = "JOBQ_TEST_HOME"
)

func TestMain(m *testing.M) {
	roles := map[string]func(*port.Store) error{"hold": hold, "guarded": guarded, "load": load}
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "guardian":
		// Keeps descriptor 3, the live file, until descriptor 4 ends.
		_, _ = io.Copy(io.Discard, os.NewFile(4, "until"))
	default:
		s, err := local.Open(context.Background(), local.Options{Home: os.Getenv(homeEnv), Prefix: "main", Kind: role})
		if err == nil {
			err = roles[role](s.Port())
		}
		fmt.Fprintln(os.Stderr, role, "ended:", err)
		os.Exit(1)
	}
}

// hold takes a message, a record and a lease, says so and waits to be killed.
func hold(s *port.Store) error {
	ctx := context.Background()
	ds, err := s.Queues.Queue("cpu").Receive(ctx, port.ReceiveOptions{Max: 1, Lock: time.Hour})
	if err != nil || len(ds) != 1 {
		return fmt.Errorf("received %d messages: %w", len(ds), err)
	}
	m, err := s.Presence.Join(ctx, port.Member{Kind: "worker"})
	if err != nil {
		return err
	}
	_, err = s.Records.Create(ctx, port.RecordKey{Workflow: "w", Task: "a", Attempt: 1}, port.Record{Owner: m.ID()})
	if err != nil {
		return err
	}
	if err := s.Leases.Acquire(ctx, "lock", m.ID(), time.Hour); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.Scratch, "work"), 0o700); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// guarded is hold with a guardian that inherits the live file.
func guarded(s *port.Store) error {
	m, err := s.Presence.Join(context.Background(), port.Member{})
	if err != nil {
		return err
	}
	guardian := exec.Command(os.Args[0])
	guardian.Env = append(os.Environ(), roleEnv+"=guardian")
	guardian.ExtraFiles = append(m.Inherit(), os.NewFile(3, "until"))
	if err := guardian.Start(); err != nil {
		return err
	}
	return hold(s)
}

// load writes until it is killed and says what was answered: the steps of eight
// states and the messages sent beside them.
func load(s *port.Store) error {
	ctx := context.Background()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	var mu sync.Mutex
	for i := range 8 {
		wg.Go(func() {
			wf := strconv.Itoa(i)
			tag, err := s.States.Create(ctx, wf, []byte("0"))
			for step := 1; err == nil; step++ {
				if tag, err = s.States.Save(ctx, wf, []byte(strconv.Itoa(step)), tag); err != nil {
					break
				}
				id := fmt.Sprintf("%d/%d", i, step)
				if sent := s.Queues.Queue("cpu").Send(ctx, []port.Message{{ID: id, Body: []byte(id)}}); sent != nil {
					err = sent[0]
					break
				}
				mu.Lock()
				fmt.Println(wf, step)
				mu.Unlock()
			}
			errs <- err
		})
	}
	wg.Wait()
	return <-errs
}

// process is another process in a role.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func start(t *testing.T, home, role string, extra ...*os.File) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, homeEnv+"="+home)
	cmd.ExtraFiles = extra
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{cmd: cmd, lines: bufio.NewScanner(stdout)}
}

// line waits for the next line that the process prints.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the other process ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// kill is kill -9. When it returns the process is gone, and rest is what it had
// printed by then.
func (p *process) kill(t *testing.T) (rest []string) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for p.lines.Scan() {
		rest = append(rest, p.lines.Text())
	}
	if _, ok := errors.AsType[*exec.ExitError](p.cmd.Wait()); !ok {
		t.Fatal("the other process ended by itself")
	}
	return rest
}

// withTask is a store with one message in queue cpu.
func withTask(t *testing.T) (home string, s *port.Store) {
	t.Helper()
	home = t.TempDir()
	s = open(t, home).Port()
	if err := s.Queues.Ensure(t.Context(), "cpu"); err != nil {
		t.Fatal(err)
	}
	if errs := s.Queues.Queue("cpu").Send(t.Context(), []port.Message{{ID: "task", Body: []byte("task")}}); errs != nil {
		t.Fatal(errs)
	}
	return home, s
}

func tryReceive(t *testing.T, s *port.Store, wait time.Duration) []port.Delivery {
	t.Helper()
	ds, err := s.Queues.Queue("cpu").Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Hour, Wait: wait})
	if err != nil {
		t.Fatalf("Receive = error %v", err)
	}
	return ds
}

func ownerOf(t *testing.T, s *port.Store) port.Liveness {
	t.Helper()
	r, err := s.Records.Read(t.Context(), port.RecordKey{Workflow: "w", Task: "a", Attempt: 1})
	if err != nil {
		t.Fatalf("Read = error %v", err)
	}
	return r.Owned
}

func TestKillFreesMessageRecordAndLeaseAtOnce(t *testing.T) {
	t.Parallel()
	home, s := withTask(t)
	other := start(t, home, "hold")
	if got := other.line(t); got != "ready" {
		t.Fatalf("the other process said %q", got)
	}
	if ds, owned := tryReceive(t, s, 0), ownerOf(t, s); len(ds) != 0 || owned != port.AliveOwner {
		t.Fatalf("while the holder lives: %d messages, owner %v, want none and alive", len(ds), owned)
	}
	if err := s.Leases.Acquire(t.Context(), "lock", "me", time.Hour); err == nil {
		t.Fatal("Acquire succeeded while the holder lives")
	}
	other.kill(t)
	killed := time.Now()
	ds := tryReceive(t, s, 30*time.Second)
	if took := time.Since(killed); len(ds) != 1 || ds[0].Count != 2 || took > 5*time.Second {
		t.Errorf("after kill -9: %d messages after %v, want the one, with count 2, at once", len(ds), took)
	}
	if got := ownerOf(t, s); got != port.DeadOwner {
		t.Errorf("after kill -9: owner %v, want dead", got)
	}
	if err := s.Leases.Acquire(t.Context(), "lock", "me", time.Hour); err != nil {
		t.Errorf("after kill -9: Acquire = error %v", err)
	}
}

func TestKillWakesAWaitingReceive(t *testing.T) {
	t.Parallel()
	home, s := withTask(t)
	other := start(t, home, "hold")
	other.line(t)
	got := make(chan int, 1)
	go func() {
		ds, _ := s.Queues.Queue("cpu").Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Hour, Wait: 30 * time.Second})
		got <- len(ds)
	}()
	other.kill(t)
	if n := <-got; n != 1 {
		t.Errorf("the waiting Receive gave %d messages, want 1", n)
	}
}

func TestGuardianKeepsItsProcessAlive(t *testing.T) {
	t.Parallel()
	home, s := withTask(t)
	until, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	other := start(t, home, "guarded", until)
	_ = until.Close()
	other.line(t)
	other.kill(t)
	if ds, owned := tryReceive(t, s, 0), ownerOf(t, s); len(ds) != 0 || owned != port.AliveOwner {
		t.Errorf("while the guardian lives: %d messages, owner %v, want none and alive", len(ds), owned)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if ds := tryReceive(t, s, 30*time.Second); len(ds) != 1 {
		t.Errorf("after the guardian ended: %d messages, want 1", len(ds))
	}
	if got := ownerOf(t, s); got != port.DeadOwner {
		t.Errorf("after the guardian ended: owner %v, want dead", got)
	}
}

func TestKillLosesNothingThatWasAnswered(t *testing.T) {
	t.Parallel()
	home, s := withTask(t)
	if _, err := s.Queues.Queue("cpu").Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := start(t, home, "load")
	var lines []string
	for range 300 {
		lines = append(lines, other.line(t))
	}
	answered := map[string]int{}
	for _, line := range append(lines, other.kill(t)...) {
		wf, step, _ := strings.Cut(line, " ")
		// The very last line may have been cut short by the kill.
		if n, err := strconv.Atoi(step); err == nil {
			answered[wf] = max(answered[wf], n)
		}
	}
	s = open(t, home).Port()
	sent := map[string]bool{}
	for {
		ds, err := s.Queues.Queue("cpu").Receive(t.Context(), port.ReceiveOptions{Max: 1000, Lock: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if sent[d.ID] {
				t.Errorf("message %s is there twice", d.ID)
			}
			sent[d.ID] = true
		}
		if len(ds) == 0 {
			break
		}
	}
	for wf, step := range answered {
		doc, err := s.States.Load(t.Context(), wf, "")
		if err != nil {
			t.Fatalf("Load(%s) = error %v", wf, err)
		}
		if got, _ := strconv.Atoi(string(doc.Body)); got < step {
			t.Errorf("state %s is at step %d, step %d was answered", wf, got, step)
		}
		for i := 1; i <= step; i++ {
			if !sent[fmt.Sprintf("%s/%d", wf, i)] {
				t.Errorf("message %s/%d was answered and is gone", wf, i)
			}
		}
	}
}

func TestDeadProcessesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	home, s := withTask(t)
	other := start(t, home, "hold")
	other.line(t)
	other.kill(t)
	files := func() []string {
		names, err := filepath.Glob(filepath.Join(home, "live", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := len(files()); got != 2 {
		t.Errorf("after kill -9 there are %d live files, want that of the dead and ours", got)
	}
	next := open(t, home)
	if left, err := os.ReadDir(filepath.Join(home, "scratch")); err != nil || len(left) != 0 {
		t.Errorf("scratch holds %v, error %v, want nothing", left, err)
	}
	if got := len(files()); got != 2 {
		t.Errorf("after the next Open there are %d live files, want that of it and ours", got)
	}
	if err := next.Close(); err != nil {
		t.Errorf("Close = error %v", err)
	}
	if got := len(files()); got != 1 {
		t.Errorf("after Close there are %d live files, want ours", got)
	}
	members, err := s.Presence.Members(t.Context())
	if err != nil || len(members) != 0 {
		t.Errorf("Members = %v, error %v, want none", members, err)
	}
}

func TestManyProcessesOpenAFreshHomeAtOnce(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "new", "home")
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		wg.Go(func() {
			s, err := local.Open(t.Context(), local.Options{Home: home, Prefix: "main"})
			if err == nil {
				_, err = s.Port().States.Create(t.Context(), strconv.Itoa(i), nil)
				err = errors.Join(err, s.Close())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("Open, Create, Close by many = error %v", err)
	}
}

// TestABusyProcessDoesNotStarveAnother counts what the busy one does while the other
// waits for a save: time would tell of the disk.
func TestABusyProcessDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	home, s := withTask(t)
	other := start(t, home, "load")
	for !strings.HasPrefix(other.line(t), "0 ") { // until the workflow that is looked at is there
	}
	go func() {
		for other.lines.Scan() {
			// Its answers must not fill the pipe.
		}
	}()
	// One of its eight workflows: a step is a save and a send, as of the others.
	steps := func() int {
		doc, err := s.States.Load(t.Context(), "0", "")
		if err != nil {
			t.Fatalf("Load = error %v", err)
		}
		n, err := strconv.Atoi(string(doc.Body))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tag, err := s.States.Create(t.Context(), "mine", nil)
	worst := 0
	for range 40 {
		if err != nil {
			t.Fatalf("Save beside a busy process = error %v", err)
		}
		before := steps()
		tag, err = s.States.Save(t.Context(), "mine", nil, tag)
		worst = max(worst, steps()-before)
	}
	t.Logf("during the slowest of 40 saves each of its workflows went %d steps", worst)
	if worst > 200 {
		t.Errorf("during one save beside a busy process each of its workflows went %d steps", worst)
	}
}
