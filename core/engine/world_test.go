package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/msg"
	"jobq/core/state"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tb is what this package's tests need of testing.T and of rapid.T.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// parse reads a definition in a short form, one task a line:
//
//	name: parent parent  any  retries 2  if parent parent
//
// "if" names the parents that the condition names, "-" for none. The lines
// "limit N" and "sinks" set max_parallelism and all_sinks_succeed.
func parse(t tb, text string) *dag.Definition {
	t.Helper()
	d := &dag.Definition{Name: "test", DefaultQueue: "q"}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, rest, isTask := strings.Cut(line, ":")
		switch {
		case line == "":
		case isTask:
			d.Tasks = append(d.Tasks, parseTask(t, name, strings.Fields(rest)))
		case line == "sinks":
			d.ResultPolicy = dag.AllSinksSucceed
		default:
			d.MaxParallelism = number(t, strings.TrimPrefix(line, "limit "))
		}
	}
	return d
}

func parseTask(t tb, name string, words []string) dag.Task {
	t.Helper()
	task := dag.Task{Name: name, Queue: "q"}
	for i := 0; i < len(words); i++ {
		n, err := strconv.Atoi(words[i])
		switch word := words[i]; {
		case err == nil:
			task.DepPolicy = dag.DepPolicy{Kind: dag.AtLeast, N: n}
		case word == "any":
			task.DepPolicy = dag.DepPolicy{Kind: dag.Any}
		case word == "all_settled":
			task.DepPolicy = dag.DepPolicy{Kind: dag.AllSettled}
		case word == "retries":
			i++
			task.NumRetries = number(t, words[i])
		case word == "if":
			task.Condition = strings.Join(words[i+1:], " ")
			return task
		default:
			task.DependsOn = append(task.DependsOn, word)
		}
	}
	return task
}

func number(t tb, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%q is no number", s)
	}
	return n
}

// named is the engine.NamedParents of definitions whose conditions are lists of
// names.
func named(d *dag.Definition) engine.NamedParents {
	return func(i int) []string {
		return strings.Fields(strings.ReplaceAll(d.Tasks[i].Condition, "-", ""))
	}
}

func newPlan(t tb, d *dag.Definition) *engine.Plan {
	t.Helper()
	p, err := engine.NewPlan(d, named(d))
	if err != nil {
		t.Fatalf("NewPlan: %v", err)
	}
	return p
}

func newRun(t tb, p *engine.Plan, s *state.Workflow) *engine.Run {
	t.Helper()
	r, err := engine.NewRun(p, s)
	if err != nil {
		t.Fatalf("NewRun: %v", err)
	}
	return r
}

// world drives a run by words and checks it after every event.
type world struct {
	t    tb
	plan *engine.Plan
	run  *engine.Run
	now  time.Time
	last engine.Effects
	// sent are all attempts that were to be sent, as "name/attempt".
	sent []string
}

// begin returns the world of a workflow that was just submitted.
func begin(t tb, definition string) *world {
	t.Helper()
	p := newPlan(t, parse(t, definition))
	w := &world{t: t, plan: p, now: epoch, run: newRun(t, p, engine.Begin(p, "w1", "hash", nil, epoch))}
	w.step(engine.Activated{})
	return w
}

func (w *world) step(ev engine.Event) engine.Effects {
	w.t.Helper()
	out, err := w.run.Step(ev, w.now)
	if err != nil {
		w.t.Fatalf("Step(%+v): %v", ev, err)
	}
	if err := engine.Check(w.run); err != nil {
		w.t.Fatalf("after Step(%+v): %v", ev, err)
	}
	for _, a := range out.Send {
		w.sent = append(w.sent, fmt.Sprintf("%s/%d", w.plan.Name(a.Task), a.Attempt))
	}
	w.last = out
	return out
}

func (w *world) task(name string) int32 {
	w.t.Helper()
	i, ok := w.plan.Task(name)
	if !ok {
		w.t.Fatalf("no task %q", name)
	}
	return i
}

func (w *world) attempt(name string) uint32 { return w.run.State().Attempt[w.task(name)] }

// do runs a script of lines or of words separated by semicolons; the verbs are
// those of its switch.
func (w *world) do(script string) {
	w.t.Helper()
	for _, line := range strings.FieldsFunc(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		if words := strings.Fields(line); len(words) > 0 {
			w.verb(words[0], words[1:])
		}
	}
}

func (w *world) verb(verb string, args []string) {
	w.t.Helper()
	command := engine.Command{By: "ada"}
	switch verb {
	case "cancel":
		w.step(engine.Cancel{Command: command})
	case "retry":
		w.step(engine.Retry{Command: command})
	case "rerun":
		w.step(engine.Rerun{Command: command, Tasks: args})
	case "rerun-from":
		w.step(engine.Rerun{Command: command, Tasks: args, Downstream: true})
	case "mark":
		to := map[string]state.TaskStatus{"completed": state.Completed, "skipped": state.Skipped, "failed": state.Failed}[args[1]]
		w.step(engine.Mark{Command: command, Task: args[0], To: to})
	case "wait":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			w.t.Fatal(err)
		}
		w.now = w.now.Add(d)
		w.step(engine.Wake{})
	default:
		for _, name := range args {
			w.step(w.event(verb, name))
		}
	}
}

// event is what happens to the present attempt of the task called name.
func (w *world) event(verb, name string) engine.Event {
	w.t.Helper()
	c := engine.Completion{Task: name}
	if i, ok := w.plan.Task(name); ok {
		c.Attempt = w.run.State().Attempt[i]
	}
	switch verb {
	case "sent":
		return engine.Dispatched{Task: w.task(name), Attempt: c.Attempt}
	case "fenced":
		return engine.Fenced{Task: w.task(name), Attempt: c.Attempt}
	case "ok":
		c.Success = true
	case "fail":
		c.Reason, c.Error = msg.Exited, "exit 1"
	case "refused":
		c.Reason, c.Error = msg.Undeliverable, "no such queue"
	case "back":
		c.Reason, c.Error = msg.Cancelled, "stopped"
	case "unnumbered":
		c.Attempt, c.Success = 0, true
	case "late":
		c.Attempt, c.Success = c.Attempt-1, true
	case "true":
		return engine.Verdict{Task: w.task(name), Outcome: engine.ConditionTrue}
	case "false":
		return engine.Verdict{Task: w.task(name), Outcome: engine.ConditionFalse, Reason: "it was false"}
	case "error":
		return engine.Verdict{Task: w.task(name), Outcome: engine.ConditionError, Reason: "no such field"}
	case "hung":
		return engine.Verdict{Task: w.task(name), Outcome: engine.ConditionUpstream, Reason: "a parent did not complete"}
	default:
		w.t.Fatalf("no verb %q", verb)
	}
	return c
}

// word is the status of one task; parked tasks are told from those with a
// number.
func word(s state.TaskStatus) string {
	if s == state.Parked {
		return "parked"
	}
	return s.String()
}

// String is the whole picture: "a completed, b ready: running".
func (w *world) String() string {
	s := w.run.State()
	var words []string
	for i, status := range s.TaskStatus {
		words = append(words, w.plan.Name(int32(i))+" "+word(status))
	}
	return strings.Join(words, ", ") + ": " + s.Status.String()
}

func (w *world) want(picture string) {
	w.t.Helper()
	if got := w.String(); got != picture {
		w.t.Errorf("got  %s\nwant %s", got, picture)
	}
}

func (w *world) wantSent(attempts ...string) {
	w.t.Helper()
	if !slices.Equal(w.sent, attempts) {
		w.t.Errorf("sent %v, want %v", w.sent, attempts)
	}
}

// reload returns the run that a coordinator without memory makes of the state.
func reload(t tb, r *engine.Run) *engine.Run {
	t.Helper()
	b, err := state.Encode(r.State())
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	s, err := state.Decode(b)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return newRun(t, r.Plan(), s)
}
