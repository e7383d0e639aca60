//go:build unix

package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/worker"
	"jobq/worker/proc/proctest"
)

func TestACommandRunsAndIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.run(cmd("echo out; echo err >&2"))
	if !c.Success || c.ExitCode == nil || *c.ExitCode != 0 || c.Start != 1 || c.StartedAt.IsZero() || c.EndedAt.Before(c.StartedAt) || c.Worker == "" {
		t.Errorf("completion = %+v", c)
	}
	lines := strings.Split(strings.TrimSpace(r.log(c.Log)), "\n")
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"err", "out"}) {
		t.Errorf("log %s = %q, want both lines", c.Log, lines)
	}
	want := []worker.OutputLine{{"w", "t", 1, "stderr", "err"}, {"w", "t", 1, "stdout", "out"}}
	slices.SortFunc(r.lines, func(a, b worker.OutputLine) int { return strings.Compare(a.Stream, b.Stream) })
	if !slices.Equal(r.lines, want) {
		t.Errorf("lines = %+v, want %+v", r.lines, want)
	}
	if left, err := os.ReadDir(r.conf.Scratch); err != nil || len(left) != 0 {
		t.Errorf("the scratch directory holds %v, %v; want nothing", left, err)
	}
}

func TestFailuresSayWhatHappened(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kwargs []msg.Kwarg
		reason msg.Reason
		says   []string
	}{
		"an exit code":         {cmd("echo boom >&2; exit 3"), msg.Exited, []string{"exit code 3", "boom"}},
		"only stdout speaks":   {cmd("echo FAILED test_x; exit 1"), msg.Exited, []string{"exit code 1", "FAILED test_x"}},
		"a signal":             {cmd("kill -SEGV $$"), msg.Exited, []string{"SIGSEGV"}},
		"killed by others":     {cmd("kill -KILL $$"), msg.Exited, []string{"SIGKILL", "memory"}},
		"no such directory":    {append(cmd("true"), kwarg("cwd", `"nowhere"`)), msg.SpawnFailed, []string{"nowhere"}},
		"no command":           {[]msg.Kwarg{kwarg("model", `"x"`)}, msg.SpawnFailed, []string{"cmd"}},
		"a command of no text": {[]msg.Kwarg{kwarg("cmd", `["a"]`)}, msg.SpawnFailed, []string{`"cmd"`, "text"}},
		"a name with =":        {append(cmd("true"), kwarg("env", `{"A=B": "x"}`)), msg.SpawnFailed, []string{"A=B"}},
		"env that is a list":   {append(cmd("true"), kwarg("env", `["A"]`)), msg.SpawnFailed, []string{"env"}},
		"a nested env":         {append(cmd("true"), kwarg("env", `{"A": {}}`)), msg.SpawnFailed, []string{"env.A"}},
		"much error text":      {cmd("echo begin >&2; head -c 5000000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1"), msg.Exited, []string{"begin", "end", "exit code 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRig(t).run(tc.kwargs)
			if c.Success || c.Reason != tc.reason || len(c.Error) > msg.MaxError {
				t.Errorf("completion = %+v, want reason %q", c, tc.reason)
			}
			for _, text := range tc.says {
				if !strings.Contains(c.Error, text) {
					t.Errorf("error = %q, want it to say %q", c.Error, text)
				}
			}
		})
	}
}

func kwarg(key, value string) msg.Kwarg { return msg.Kwarg{Key: key, Value: json.RawMessage(value)} }

func TestTheEnvironmentOfAChild(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.conf.Environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "JOBQ_CONNECTION_STRING=secret", "AZURE_STORAGE_CONNECTION_STRING=secret",
		"AZURE_CLIENT_SECRET=secret", "AZURE_CLIENT_ID=public", "JOBQ_RUN_ID=outer", "JOBQ_WORKFLOW_TASK=outer", "PYTHONUNBUFFERED=0",
	}
	value := "it's $HOME \"x\"\n2nd"
	raw, err := json.Marshal(map[string]any{"A": value, "N": 5, "HOME": "", "JOBQ_QUEUE_NAME": "mine", "JOBQ_RUN_ID": "outer"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.conf.Cwd, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.conf.Namespace, r.conf.Queues = "run-1-", []string{"run-1-cpu"}
	stop := r.start()
	defer stop()
	r.pushTo("run-1-cpu", "t", append(cmd(`printf %s "$A" | sha256sum; pwd; echo "[$N][$HOME][$JOBQ_QUEUE_NAME]"; env`),
		kwarg("env", string(raw)), kwarg("cwd", `"sub"`)), func(m *msg.Task) { m.Queues = "sb://ns" })
	c := r.next()
	log := r.log(c.Log)
	sum := sha256.Sum256([]byte(value))
	for _, want := range []string{
		"JOBQ_QUEUE=cpu\n", hex.EncodeToString(sum[:]), "/sub\n", "[5][][mine]", "JOBQ_WORKFLOW_ID=w\n", "JOBQ_WORKFLOW_TASK=t\n",
		"JOBQ_WORKFLOW_ATTEMPT=1\n", "JOBQ_WORKFLOW_PREFIX=local/proj\n", "JOBQ_WORKFLOW_QUEUES=sb://ns\n",
		"JOBQ_RUN_ID=w/t/1.1/", "JOBQ_TASK_ID=w/t/1\n", "PYTHONUNBUFFERED=1\n", "AZURE_CLIENT_ID=public\n",
		"JOBQ_OUTPUT_FILE=/", "JOBQ_UPSTREAM_DIR=/", "JOBQ_WORKFLOW_UPSTREAM_REFS=/",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the output lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "secret") || strings.Contains(log, "outer") {
		t.Errorf("the child sees what is not its own:\n%s", log)
	}
}

func TestOutputsOfAnyKind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cmd    string
		ref    string
		reason msg.Reason
		says   string
	}{
		"none":              {"true", "", "", ""},
		"empty":             {`: > "$JOBQ_OUTPUT_FILE"`, "", "", ""},
		"blank":             {`echo > "$JOBQ_OUTPUT_FILE"`, "", "", ""},
		"removed":           {`echo 5 > "$JOBQ_OUTPUT_FILE"; rm "$JOBQ_OUTPUT_FILE"`, "", "", ""},
		"an object":         {`echo '{"a": 1}' > "$JOBQ_OUTPUT_FILE"`, `{"a": 1}`, "", ""},
		"a list":            {`echo '[1]' > "$JOBQ_OUTPUT_FILE"`, `[1]`, "", ""},
		"a number":          {`echo 5 > "$JOBQ_OUTPUT_FILE"`, `5`, "", ""},
		"by the helper":     {`jobq output set '{"a": "é"}'`, `{"a": "é"}`, "", ""},
		"through a pipe":    {`echo '[2]' | jobq output set -`, `[2]`, "", ""},
		"no JSON":           {`echo not json > "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "not JSON"},
		"NaN":               {`echo '{"a": NaN}' > "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "NaN"},
		"two documents":     {`echo '{} {}' > "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "exactly one"},
		"a byte order mark": {`printf '\357\273\277{}' > "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "byte order mark"},
		"not UTF-8":         {`printf '"\200"' > "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "UTF-8"},
		"a directory":       {`mkdir "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "directory"},
		"a named pipe":      {`mkfifo "$JOBQ_OUTPUT_FILE"`, "", msg.OutputInvalid, "named pipe"},
		"after a failure":   {`echo '[3]' > "$JOBQ_OUTPUT_FILE"; exit 1`, "[3]", msg.Exited, "exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRig(t).run(cmd(tc.cmd))
			if c.OutputRef != tc.ref || c.Reason != tc.reason || c.Success != (tc.reason == "") || !strings.Contains(c.Error, tc.says) {
				t.Errorf("completion = %+v, want output %q, reason %q, error with %q", c, tc.ref, tc.reason, tc.says)
			}
		})
	}
}

func TestParentsOutputsAreReadyFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	refs := &msg.Refs{}
	refs.Add("w", "train/a b", `{"metrics": {"mae": 0.03}, "items": ["x", "y"]}`)
	refs.Add("w", "big", "blob:w/big.json")
	refs.Add("w", "index", "7")
	refs.Add("w", "skipped", "")
	refs.Add("w", strings.Repeat("長", 80), "8")
	if err := r.store.Port().Outputs.Put(t.Context(), "w/big.json", []byte("[1, 2]")); err != nil {
		t.Fatal(err)
	}
	c := r.run(cmd(`exec 2>&1
jobq upstream get "train/a b" metrics.mae
jobq upstream get "train/a b" items.1
jobq upstream get "train/a b" nothing; echo $?
jobq upstream get big
jobq upstream get index
jobq upstream get skipped
jobq upstream get stranger; echo $?
cat "$JOBQ_UPSTREAM_DIR/big.json"; echo
ls "$JOBQ_UPSTREAM_DIR"
cat "$JOBQ_WORKFLOW_UPSTREAM_REFS"
`), func(m *msg.Task) { m.Upstream = refs })
	log := r.log(c.Log)
	for _, want := range []string{"0.03\ny\n", "it has no nothing; there is items, metrics", "[1, 2]\n7\nnull\n",
		`"stranger" is not a parent`, "big.json\n", "train~2Fa~20b.json\n", "~index.json\n", "index.json\n", `"big":"blob:w/big.json"`, `"skipped":null`} {
		if !strings.Contains(log, want) {
			t.Errorf("the output lacks %q:\n%s", want, log)
		}
	}
	if !c.Success {
		t.Errorf("completion = %+v", c)
	}
}

func TestABackgroundChildDoesNotHoldTheTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fifo := proctest.NewFifo(t)
	c := r.run(cmd(fifo.Hold() + "sleep 600 & echo done"))
	if !c.Success || r.log(c.Log) != "done\n" {
		t.Errorf("completion = %+v, log %q", c, r.log(c.Log))
	}
	fifo.AwaitEnd(t)
}

func TestACancelEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.start()
	defer stop()
	fifo := proctest.NewFifo(t)
	r.push("t", cmd(fifo.Hold()+"sleep 300 & sleep 300 & echo up >&9; wait"))
	fifo.Await(t, "up")
	r.row(port.CancelRequest{Requested: true, Epoch: 1})
	if c := r.next(); c.Success || c.Reason != msg.Cancelled {
		t.Errorf("completion = %+v, want cancelled", c)
	}
	fifo.AwaitEnd(t)
}

func TestATimeLimitEndsTheCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Any machine starts a shell within the limit.
	c := r.run(cmd("echo late >&2; sleep 300"), func(m *msg.Task) { m.TimeoutSeconds = 4.3 })
	if c.Reason != msg.TimedOut || c.Error != "stopped at its time limit of 4.3s: it wrote: late" {
		t.Errorf("completion = %+v, want timed out", c)
	}
}

func TestAStoppedWorkerLeavesItsTaskToTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fifo := proctest.NewFifo(t)
	marker := filepath.Join(r.conf.Cwd, "second")
	stop := r.start()
	r.push("t", cmd(fifo.Hold()+`if [ -e second ]; then exit 0; fi; echo up >&9; sleep 300`))
	fifo.Await(t, "up")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop()
	fifo.AwaitEnd(t)
	// Nothing is left that would have to time out.
	if rec := r.record(port.RecordKey{Workflow: "w", Task: "t", Attempt: 1}); !rec.Free {
		t.Errorf("after the stop the record is %+v, want it free", rec)
	}
	if ds, err := r.queues.Queue("cpu").Peek(t.Context(), 2); err != nil || len(ds) != 1 {
		t.Errorf("after the stop the queue shows %d messages, %v, want the one", len(ds), err)
	}
	stopSecond := r.start()
	defer stopSecond()
	c := r.next()
	if !c.Success || c.Start != 2 || c.Attempt != 1 {
		t.Errorf("completion = %+v, want success of start 2 of the same attempt", c)
	}
}

func TestManyTasksOverManyQueuesAndFewSlots(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.conf.Queues = []string{"a", "b", "c"}
	r.conf.Slots = 2
	for i := range 60 {
		r.pushTo(r.conf.Queues[i%3], fmt.Sprintf("t%d", i), cmd("true"))
	}
	stop := r.start()
	defer stop()
	seen := map[string]int{}
	for range 60 {
		c := r.next()
		seen[c.Task]++
	}
	if len(seen) != 60 {
		t.Errorf("%d tasks of 60 were reported", len(seen))
	}
}

func TestABusyQueueDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.conf.Queues, r.conf.Slots = []string{"busy", "quiet"}, 1
	for i := range 40 {
		r.pushTo("busy", fmt.Sprintf("busy%d", i), cmd("true"))
	}
	r.pushTo("quiet", "quiet", cmd("true"))
	stop := r.start()
	defer stop()
	for i := range 40 {
		if r.next().Task == "quiet" {
			return
		}
		if i == 5 {
			t.Fatal("five tasks of one queue ran before the only one of the other")
		}
	}
}

func TestAnIdleWorkerEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.conf.IdleTimeout = 50 * time.Millisecond
	w, err := worker.New(r.conf)
	if err != nil {
		t.Fatal(err)
	}
	r.push("t", cmd("sleep 0.2"))
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := r.next(); !c.Success {
		t.Errorf("completion = %+v; an idle timeout must not stop a task", c)
	}
}

func TestBytesOfAnyKindStayInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.run(cmd(`printf '\200\377 ok\n'; head -c 300000 /dev/zero | tr '\0' '\377'`))
	if want := "\x80\xff ok\n" + strings.Repeat("\xff", 300_000); r.log(c.Log) != want {
		t.Errorf("the log has %d bytes that are not those written", len(r.log(c.Log)))
	}
}

func TestAWorkerNeedsAStoreAndAQueue(t *testing.T) {
	t.Parallel()
	if _, err := worker.New(worker.Config{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("New of nothing = %v, want invalid", err)
	}
}

func TestWhatSurvivedALostStartIsKilledBeforeTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fifo := proctest.NewFifo(t)
	orphan := exec.Command("/bin/sh", "-c", fifo.Hold()+"echo up >&9; sleep 300")
	runID := proctest.RunID(t)
	orphan.Env = append(os.Environ(), "JOBQ_RUN_ID="+runID)
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	defer orphan.Wait()
	defer orphan.Process.Kill()
	fifo.Await(t, "up")
	body, err := msg.EncodeRecord(msg.AttemptRecord{Start: 1, TTL: time.Nanosecond, RunID: runID})
	if err != nil {
		t.Fatal(err)
	}
	key := port.RecordKey{Workflow: "w", Task: "t", Attempt: 1}
	if _, err := r.store.Port().Records.Create(t.Context(), key, port.Record{Owner: "dead", Body: body}); err != nil {
		t.Fatal(err)
	}
	c := r.run(cmd("true"))
	if !c.Success || c.Start != 2 {
		t.Errorf("completion = %+v, want success of start 2", c)
	}
	fifo.AwaitEnd(t)
}

func TestAStopBeforeTheStartIsNoError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := worker.New(r.conf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

// What left the group of a command does not live on beside the next start of the
// attempt, also where the worker was stopped in good order.
func TestWhatLeftTheGroupEndsBeforeTheAttemptIsGivenBack(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not show the environment of a process")
	}
	r := newRig(t)
	fifo := proctest.NewFifo(t)
	stop := r.start()
	r.push("t", cmd(fifo.Hold()+`setsid sh -c 'echo up >&9; exec sleep 300' & sleep 300`))
	fifo.Await(t, "up")
	stop()
	fifo.AwaitEnd(t)
}

// A task that spoils the scratch directory fails itself, and not the worker.
func TestFilesThatCannotBeRemovedFailNoWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.conf.Scratch = filepath.Join(t.TempDir(), "scratch")
	c := r.run(cmd(fmt.Sprintf("rm -r '%[1]s'; ln -s '%[1]s' '%[1]s'", r.conf.Scratch)))
	if c.Reason != msg.OutputInvalid || c.ExitCode == nil || *c.ExitCode != 0 {
		t.Errorf("completion = %+v, want an output that cannot be read", c)
	}
	if _, err := os.Readlink(r.conf.Scratch); err != nil {
		t.Errorf("the task left nothing that cannot be removed: %v", err)
	}
}

// refusing is a log that refuses the first thing it is to store.
type refusing struct {
	port.Log
	refused atomic.Bool
	stored  chan string
}

func (l *refusing) Append(ctx context.Context, name string, data []byte) error {
	if !l.refused.Swap(true) {
		return fault.New(fault.Denied, "not now")
	}
	err := l.Log.Append(ctx, name, data)
	l.stored <- name
	return err
}

// TestALogThatWasRefusedComesLater: with the next one that the store takes, and not only
// when the worker ends.
func TestALogThatWasRefusedComesLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	store := *r.conf.Store
	taskLogs := &refusing{Log: store.TaskLogs, stored: make(chan string, 2)}
	store.TaskLogs = taskLogs
	r.conf.Store = &store
	stop := r.start()
	defer stop()
	var want []string
	for _, name := range []string{"t1", "t2"} {
		r.push(name, cmd("echo "+name))
		want = append([]string{r.next().Log}, want...)
	}
	for _, log := range want {
		select {
		case got := <-taskLogs.stored:
			if got != log {
				t.Errorf("stored %s, want %s", got, log)
			}
		case <-time.After(patience):
			t.Fatalf("%s is not stored", log)
		}
	}
}
