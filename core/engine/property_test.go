package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/msg"
	"jobq/core/state"
)

// source decides what happens next: a number from 0 to n-1.
type source func(n int) int

func (s source) chance(percent int) bool { return s(100) < percent }

func fromRapid(t *rapid.T) source {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
}

func fromSeed(seed uint64) source {
	r := rand.New(rand.NewPCG(seed, 0))
	return r.IntN
}

// drawDefinition draws a DAG of at most size tasks in which parents may come
// after their children in the file.
func drawDefinition(pick source, size int) *dag.Definition {
	n := 1 + pick(size)
	d := &dag.Definition{Name: "drawn", DefaultQueue: "q", MaxParallelism: max(0, pick(7)-3), Tasks: make([]dag.Task, n)}
	if pick.chance(30) {
		d.ResultPolicy = dag.AllSinksSucceed
	}
	place := make([]int, n) // place[i] is the position in the file of the i-th task of an order
	for i := range place {
		j := pick(i + 1)
		place[i], place[j] = place[j], i
	}
	density := 10 + pick(50)
	for i, at := range place {
		task := dag.Task{Name: fmt.Sprintf("t%d", at), Queue: "q", NumRetries: max(0, pick(5)-2)}
		for _, earlier := range place[:i] {
			if pick.chance(density) {
				task.DependsOn = append(task.DependsOn, fmt.Sprintf("t%d", earlier))
			}
		}
		drawPolicy(pick, &task)
		d.Tasks[at] = task
	}
	return d
}

func drawPolicy(pick source, task *dag.Task) {
	task.DepPolicy.Kind = []dag.PolicyKind{dag.All, dag.All, dag.Any, dag.AtLeast, dag.AllSettled}[pick(5)]
	if task.DepPolicy.Kind == dag.AtLeast {
		task.DepPolicy.N = 1 + pick(max(1, len(task.DependsOn)))
	}
	if !pick.chance(25) {
		return
	}
	words := []string{"-"}
	for _, parent := range task.DependsOn {
		if pick.chance(60) {
			words = append(words, parent)
		}
	}
	task.Condition = strings.Join(words, " ")
}

// story is one history of one workflow, checked after every event.
type story struct {
	*world
	pick     source
	model    *model
	past     []engine.Event
	sentUpTo map[int32]uint32
	reopened bool // a command opened a task that had ended
	commands int
	moves    map[state.Transition]bool
}

func newStory(t tb, pick source, size int) *story {
	d := drawDefinition(pick, size)
	p := newPlan(t, d)
	s := &story{
		world: &world{t: t, plan: p, now: epoch, run: newRun(t, p, engine.Begin(p, "w1", "hash", nil, epoch))},
		pick:  pick, model: newModel(d), sentUpTo: map[int32]uint32{}, moves: map[state.Transition]bool{},
	}
	s.happen(engine.Activated{})
	return s
}

// happen applies ev to the run, to a copy that was stored and loaded, and to
// the model, and compares.
func (s *story) happen(ev engine.Event) {
	s.t.Helper()
	copied := reload(s.t, s.run)
	before := encode(s.t, s.run)
	was := slices.Clone(s.run.State().TaskStatus)
	whole := s.run.State().Status
	c, isReport := ev.(engine.Completion)
	awaited := isReport && s.run.Awaits(c.Task, c.Attempt)
	out := s.step(ev)
	if isReport && awaited != (out.Refusal == "") {
		s.t.Fatalf("%+v: awaited %t, refused with %q", ev, awaited, out.Refusal)
	}
	if now := s.run.State().Status; out.Settled != (now.Ended() && now != whole) {
		s.t.Fatalf("%+v: Settled is %t, the workflow went from %s to %s", ev, out.Settled, whole, now)
	}
	after := encode(s.t, s.run)

	same, err := copied.Step(ev, s.now)
	if err != nil {
		s.t.Fatalf("after a reload Step(%+v): %v", ev, err)
	}
	if diff := cmp.Diff(out, same); diff != "" {
		s.t.Fatalf("%+v has other effects after a reload (-stayed +loaded):\n%s", ev, diff)
	}
	if !bytes.Equal(after, encode(s.t, copied)) {
		s.t.Fatalf("%+v leads to another state after a reload", ev)
	}
	if bytes.Equal(before, after) == out.Changed {
		if _, first := ev.(engine.Activated); !first {
			s.t.Fatalf("%+v: Changed is %t, which the state denies", ev, out.Changed)
		}
	}

	s.model.apply(ev, s.now)
	if got, want := s.String(), s.model.String(); got != want {
		s.t.Fatalf("after %+v\ngot  %s\nwant %s", ev, got, want)
	}
	s.checkEffects(ev, was, out)
	s.past = append(s.past, ev)
}

func encode(t tb, r *engine.Run) []byte {
	t.Helper()
	b, err := state.Encode(r.State())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *story) checkEffects(ev engine.Event, was []state.TaskStatus, out engine.Effects) {
	s.t.Helper()
	command := out.Answer != nil
	for _, c := range out.Changes {
		move := state.Transition{From: c.From, To: c.To, Cause: c.Cause}
		if !slices.Contains(state.Transitions(), move) {
			s.t.Fatalf("%+v made the move %s to %s (%s), which is not in the table", ev, c.From, c.To, c.Cause)
		}
		if c.From.Terminal() && !command {
			s.t.Fatalf("%+v, which is no command, moved task %d out of %s", ev, c.Task, c.From)
		}
		if was[c.Task] != c.From {
			s.t.Fatalf("%+v says that task %d was %s, it was %s", ev, c.Task, c.From, was[c.Task])
		}
		task := s.plan.Definition().Tasks[c.Task]
		if c.Cause == state.CauseActivated && s.model.verdict(task) != "met" {
			s.t.Fatalf("%+v makes %s ready, whose policy %s is not met", ev, task.Name, task.DepPolicy)
		}
		was[c.Task] = c.To
		s.reopened = s.reopened || c.From.Terminal() && !c.To.Terminal()
		s.moves[move] = true
	}
	if !slices.Equal(was, s.run.State().TaskStatus) {
		s.t.Fatalf("%+v changed statuses that it does not tell", ev)
	}
	for _, a := range out.Send {
		task := s.plan.Definition().Tasks[a.Task]
		// A readiness is not revoked when a command opens a parent again.
		if s.model.verdict(task) != "met" && !s.reopened {
			s.t.Fatalf("%+v sends %s, whose policy %s is not met", ev, task.Name, task.DepPolicy)
		}
		if a.Attempt <= s.sentUpTo[a.Task] || a.Attempt != s.run.State().Attempt[a.Task] {
			s.t.Fatalf("%+v sends attempt %d of %s after %d", ev, a.Attempt, task.Name, s.sentUpTo[a.Task])
		}
		s.sentUpTo[a.Task] = a.Attempt
	}
	s.explained(ev)
}

// explained holds that every task has an explanation, and that what a failure began
// with is what a walk from the task alone finds.
func (s *story) explained(ev engine.Event) {
	s.t.Helper()
	x := engine.NewExplainer(s.run, s.now)
	for i := range s.plan.Len() {
		status := s.run.State().TaskStatus[i]
		e := x.Explain(int32(i))
		if e.Text == "" || e.Status != status.String() {
			s.t.Fatalf("after %+v task %d is explained by %+v", ev, i, e)
		}
		if status != state.UpstreamFailed {
			continue
		}
		found := s.began(i)
		want := engine.Related{Total: len(found)}
		for _, o := range found[:min(len(found), engine.MaxExplained)] {
			want.Tasks = append(want.Tasks, engine.RelatedTask{Name: s.plan.Name(int32(o)), Status: s.run.State().TaskStatus[o].String()})
		}
		if d := cmp.Diff(want, e.Blocking); d != "" {
			s.t.Fatalf("after %+v the failure of task %d began with others than a walk finds (-want +got):\n%s", ev, i, d)
		}
	}
}

// began returns the failed and cancelled ancestors of task t that are reached through
// upstream_failed tasks alone, by a walk.
func (s *story) began(t int) []int {
	found := map[int]bool{}
	var walk func(int)
	walk = func(t int) {
		for _, name := range s.plan.Definition().Tasks[t].DependsOn {
			p := int(s.task(name))
			switch status := s.run.State().TaskStatus[p]; {
			case status == state.UpstreamFailed:
				walk(p)
			case status.Unsuccessful():
				found[p] = true
			}
		}
	}
	walk(t)
	return slices.Sorted(maps.Keys(found))
}

// again repeats the last event: nothing may happen.
func (s *story) again() {
	s.t.Helper()
	ev := s.past[len(s.past)-1]
	before := encode(s.t, s.run)
	out := s.step(ev)
	if out.Changed || len(out.Send)+len(out.Need)+len(out.Fence)+len(out.Changes) > 0 || !bytes.Equal(before, encode(s.t, s.run)) {
		s.t.Fatalf("the repeat of %+v counted: %+v", ev, out)
	}
}

func (s *story) active() []engine.Attempt {
	o := s.run.Outstanding()
	var running []engine.Attempt
	for i, status := range s.run.State().TaskStatus {
		if status == state.Running || status == state.Intent {
			running = append(running, engine.Attempt{Task: int32(i), Attempt: s.run.State().Attempt[i]})
		}
	}
	idle := len(running) == 0 && len(o.Need) == 0 && !s.run.State().Status.Ended()
	if idle && !o.ParkedUntil.After(s.now) {
		s.t.Fatalf("nothing is on its way and nobody would wake the workflow: %s", s)
	}
	if s.run.Cancelling() != (len(o.Fence) > 0) && len(running) > 0 {
		s.t.Fatalf("cancelling is %t, %d attempts are to be fenced", s.run.Cancelling(), len(o.Fence))
	}
	return running
}

// act makes one thing happen, or lets a second pass where it cannot.
func (s *story) act() {
	s.t.Helper()
	active := s.active()
	need := s.run.Candidates()
	n := s.pick(100)
	switch {
	case n < 40 && len(active) > 0:
		s.happen(s.drawCompletion(active[s.pick(len(active))]))
	case n < 55 && len(active) > 0:
		a := active[s.pick(len(active))]
		s.happen(engine.Dispatched{Task: a.Task, Attempt: a.Attempt})
	case n < 65 && len(need) > 0:
		s.happen(engine.Verdict{Task: need[s.pick(len(need))], Outcome: engine.Outcome(1 + s.pick(4)), Reason: "why"})
	case n < 72:
		s.happen(s.drawNoise())
	case n < 76 && len(active) > 0:
		a := active[s.pick(len(active))]
		s.happen(engine.Fenced{Task: a.Task, Attempt: a.Attempt})
	case n < 92:
		s.happen(s.drawCommand())
	default:
		s.now = s.now.Add(time.Duration(s.pick(5000)) * time.Millisecond)
		s.happen(engine.Wake{})
	}
	s.again()
}

func (s *story) drawCompletion(a engine.Attempt) engine.Completion {
	c := engine.Completion{Task: s.plan.Name(a.Task), Attempt: a.Attempt, StartedAt: s.now.Add(-time.Second), EndedAt: s.now}
	if s.pick.chance(20) {
		c.Output = state.Output{Kind: state.InlineOutput, Text: `{"v": 1}`}
	}
	switch n := s.pick(100); {
	case n < 50:
		c.Success = true
	case n < 80:
		c.Reason, c.Error, c.Exit = msg.Exited, "exit 1", state.Exit{Code: 1, Known: true, Worker: "w"}
	case n < 94:
		c.Reason, c.Error = msg.Cancelled, "stopped"
	case n < 97:
		c.Reason = msg.Undeliverable
	default:
		c.Attempt, c.Success = 0, true
	}
	return c
}

// drawNoise draws what must not count, or counts again.
func (s *story) drawNoise() engine.Event {
	if s.pick.chance(50) && len(s.past) > 1 {
		return s.past[1+s.pick(len(s.past)-1)]
	}
	task := int32(s.pick(s.plan.Len()))
	attempt := uint32(s.pick(int(s.run.State().Attempt[task]) + 2))
	switch s.pick(4) {
	case 0:
		return engine.Dispatched{Task: task, Attempt: attempt}
	case 1:
		return engine.Verdict{Task: task, Outcome: engine.ConditionTrue}
	case 2:
		return engine.Completion{Task: "nobody", Attempt: attempt}
	default:
		return engine.Completion{Task: s.plan.Name(task), Attempt: attempt, Success: s.pick.chance(50)}
	}
}

func (s *story) drawCommand() engine.Event {
	s.commands++
	c := engine.Command{ID: fmt.Sprint("c", s.commands), By: "ada"}
	task := s.plan.Name(int32(s.pick(s.plan.Len())))
	switch n := s.pick(100); {
	case n < 12:
		return engine.Cancel{Command: c}
	case n < 50:
		return engine.Retry{Command: c}
	case n < 75:
		return engine.Rerun{Command: c, Tasks: []string{task}, Downstream: s.pick.chance(50), DryRun: s.pick.chance(10)}
	default:
		to := []state.TaskStatus{state.Completed, state.Skipped}[s.pick(2)]
		return engine.Mark{Command: c, Task: task, To: to}
	}
}

// end lets every event arrive that the state still waits for. The workflow must
// end by that.
func (s *story) end() {
	s.t.Helper()
	for range 20 * (s.plan.Len() + 1) {
		if s.run.State().Status.Ended() {
			if o := s.run.Outstanding(); !o.Empty() {
				s.t.Fatalf("the workflow has ended and wants %+v", o)
			}
			return
		}
		for _, i := range s.run.Candidates() {
			s.happen(engine.Verdict{Task: i, Outcome: engine.Outcome(1 + s.pick(4))})
		}
		for _, a := range s.active() {
			s.happen(engine.Completion{Task: s.plan.Name(a.Task), Attempt: a.Attempt, Success: s.pick.chance(50), Reason: msg.Exited})
		}
		if until := s.run.ParkedUntil(); until.After(s.now) {
			s.now = until
			s.happen(engine.Wake{})
		}
	}
	s.t.Fatalf("everything arrived and the workflow goes on: %s", s)
}

func (s *story) play() {
	s.t.Helper()
	for range s.pick(50) {
		s.act()
	}
	s.end()
	if s.pick.chance(30) {
		for range s.pick(30) {
			s.act()
		}
		s.end()
	}
}

// TestHistories plays random histories with commands at any moment. rapid makes
// the shortest one of what it finds.
func TestHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { newStory(t, fromRapid(t), 7).play() })
}

// TestEveryMoveIsPossible plays histories from fixed seeds, larger ones among
// them, until each row of the table was seen.
func TestEveryMoveIsPossible(t *testing.T) {
	t.Parallel()
	seen := map[state.Transition]bool{}
	for seed := uint64(0); seed < 200 && len(seen) < len(state.Transitions()); seed++ {
		s := newStory(seedTB{t, seed}, fromSeed(seed), 4+int(seed%12))
		s.play()
		for move := range s.moves {
			seen[move] = true
		}
	}
	for _, move := range state.Transitions() {
		if !seen[move] {
			t.Errorf("no history moved a task from %s to %s (%s)", word(move.From), word(move.To), move.Cause)
		}
	}
}

// seedTB names the seed of a history that fails.
type seedTB struct {
	*testing.T
	seed uint64
}

func (t seedTB) Fatalf(format string, args ...any) {
	t.Helper()
	t.T.Fatalf("seed %d: %s", t.seed, fmt.Sprintf(format, args...))
}

// TestQuietRunsEndAsTheReferenceSays plays runs without commands in any order
// of events and compares with what the outcomes alone say.
func TestQuietRunsEndAsTheReferenceSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { playQuietly(t, fromRapid(t), 12) })
}

func TestLargeQuietRunsEndAsTheReferenceSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		playQuietly(seedTB{t, seed}, fromSeed(seed), 150)
	}
}

func playQuietly(t tb, pick source, size int) {
	t.Helper()
	d := drawDefinition(pick, size)
	want := &reference{tasks: d.Tasks, failures: map[string]int{}, verdicts: map[string]engine.Outcome{}, ended: map[string]state.TaskStatus{}}
	for _, task := range d.Tasks {
		want.failures[task.Name] = max(0, pick(6)-2)
		want.verdicts[task.Name] = engine.Outcome(1 + pick(4))
	}
	want.run()

	p := newPlan(t, d)
	w := &world{t: t, plan: p, now: epoch, run: newRun(t, p, engine.Begin(p, "w1", "hash", nil, epoch))}
	w.step(engine.Activated{})
	failed := map[string]int{}
	for !w.run.State().Status.Ended() {
		var possible []engine.Event
		for _, i := range w.run.Outstanding().Need {
			possible = append(possible, engine.Verdict{Task: i, Outcome: want.verdicts[p.Name(i)]})
		}
		for i, status := range w.run.State().TaskStatus {
			name := p.Name(int32(i))
			if status.Numbered() {
				success := failed[name] >= want.failures[name]
				possible = append(possible, engine.Completion{Task: name, Attempt: w.run.State().Attempt[i], Success: success})
			}
		}
		if len(possible) == 0 {
			t.Fatalf("nothing can happen and the workflow goes on: %s", w)
		}
		ev := possible[pick(len(possible))]
		if c, ok := ev.(engine.Completion); ok && !c.Success {
			failed[c.Task]++
		}
		w.step(ev)
		if pick.chance(10) {
			w.run = reload(t, w.run)
		}
	}

	s := w.run.State()
	for i, task := range d.Tasks {
		if s.TaskStatus[i] != want.ended[task.Name] || s.Attempt[i] != want.attempts(task) {
			t.Errorf("%s is %s after %d attempts, want %s after %d", task.Name, s.TaskStatus[i], s.Attempt[i], want.ended[task.Name], want.attempts(task))
		}
	}
	if got := want.workflow(d.ResultPolicy); s.Status != got {
		t.Errorf("the workflow is %s, want %s", s.Status, got)
	}
}
