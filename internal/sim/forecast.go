package sim

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// Forecast asks how a workflow fares on machines that are taken away.
type Forecast struct {
	Definition *dag.Definition
	// Lasts is how long every task needs on average.
	Lasts time.Duration
	// Evictions is the chance of a machine to be taken away within an hour, from
	// 0 to 1. Another comes within minutes.
	Evictions float64
	Workers   int
	Slots     int
	Histories int
	Seed      uint64
}

// Outlook is the answer.
type Outlook struct {
	Histories int
	// Completed is in how many the workflow completed.
	Completed int
	// Starts is how many commands began in all, of Tasks tasks each.
	Starts, Tasks int
	// Mean, Least and Most are the times until the end.
	Mean, Least, Most time.Duration
	// Repeated is how often tasks were started beyond once, most first.
	Repeated []Repeated
	// Failed counts the histories that did not complete by the task that failed
	// first and why, most first.
	Failed   []Repeated
	Failures []Failure
}

// Repeated is a task, or what became of one, and how often in all histories.
type Repeated struct {
	Task  string
	Times int
}

// Run plays the histories. progress, where set, hears of each.
func (f Forecast) Run(progress func(done int)) (Outlook, error) {
	out := Outlook{Tasks: len(f.Definition.Tasks)}
	if f.Evictions < 0 || f.Evictions >= 1 {
		return out, fault.Newf(fault.Invalid, "%v is no chance of an eviction within an hour; it is from 0 to below 1", f.Evictions)
	}
	if f.Workers < 1 || f.Slots < 1 || f.Histories < 1 || f.Lasts <= 0 {
		return out, fault.New(fault.Invalid, "a forecast needs workers, slots, histories and a duration of tasks above 0")
	}
	p := &pool{}
	defer p.close()
	again, failed := map[string]int{}, map[string]int{}
	total := time.Duration(0)
	for i := range f.Histories {
		w := run(f.config(f.Seed+uint64(i)), p)
		out.take(w, again)
		if why := f.failed(w); why != "" {
			failed[why]++
		}
		took := w.ledger.workflows[f.id()].endedAt
		total += took
		if i == 0 || took < out.Least {
			out.Least = took
		}
		out.Most = max(out.Most, took)
		if progress != nil {
			progress(i + 1)
		}
	}
	out.Mean = total / time.Duration(f.Histories)
	out.Repeated, out.Failed = mostFirst(again), mostFirst(failed)
	return out, nil
}

func mostFirst(times map[string]int) []Repeated {
	var all []Repeated
	for _, name := range sortedKeys(times) {
		all = append(all, Repeated{name, times[name]})
	}
	slices.SortStableFunc(all, func(a, b Repeated) int { return cmp.Compare(b.Times, a.Times) })
	return all
}

// failed names the first task that failed and why, empty where none did.
func (f Forecast) failed(w *World) string {
	s := w.ledger.workflows[f.id()].s
	if s == nil {
		return ""
	}
	for t, status := range s.TaskStatus {
		if status == state.Failed {
			return f.Definition.Tasks[t].Name + ": " + cmp.Or(s.Reasons[int32(t)], "its attempts failed")
		}
	}
	return ""
}

func (out *Outlook) take(w *World, again map[string]int) {
	out.Histories++
	out.Completed += int(w.Counts.Ended["completed"])
	for k, a := range w.ledger.attempts {
		out.Starts += len(a.starts)
		if n := len(a.starts); n > 1 {
			again[k.Task] += n - 1
		}
	}
	if len(w.Violations) > 0 {
		out.Failures = append(out.Failures, Failure{w.o, w.Violations[0]})
	}
}

func (f Forecast) id() string { return "forecast" }

// config is the world of one history. Conditions count as true: what decides
// them is in outputs that only the real commands write.
func (f Forecast) config(seed uint64) Config {
	d := *f.Definition
	d.Tasks = slices.Clone(d.Tasks)
	work := time.Duration(0)
	for i := range d.Tasks {
		d.Tasks[i].Condition = ""
		work += f.Lasts
	}
	return Config{
		Seed: seed, Network: Even, Coordinators: 1, Workers: f.Workers, Slots: f.Slots, Sweeps: true,
		Patience:  max(100*work, 30*24*time.Hour),
		Workloads: []Workload{{ID: f.id(), Definition: &d, Outcome: f.outcome(seed)}},
		evictions: f.Evictions, idle: min(20*time.Second, f.Lasts/50),
	}
}

// outcome lets every command succeed after a time between half and one and a
// half of the average, the same for each start.
func (f Forecast) outcome(seed uint64) func(string, uint32) Ending {
	return func(task string, attempt uint32) Ending {
		h := newHash(seed)
		h.text(task)
		h.word(uint64(attempt))
		h.word(1)
		return Ending{Lasts: f.Lasts/2 + time.Duration(float64(h.sum>>11)/(1<<53)*float64(f.Lasts))}
	}
}

// evict takes machines away by chance, each with its notice.
func (w *World) evict(index int) {
	if w.o.evictions <= 0 {
		return
	}
	// Exponential: the chance within any hour is the one that was asked for.
	mean := -float64(time.Hour) / math.Log(1-w.o.evictions)
	w.s.after(time.Duration(w.draw.ExpFloat64()*mean), nil, func() {
		if w.ended {
			return
		}
		w.workers[index].strike(WorkerStop)
		w.evict(index)
	})
}

// Print writes the answer for people.
func (out *Outlook) Print(to io.Writer) {
	fmt.Fprintf(to, "completed in %d of %d histories\n", out.Completed, out.Histories)
	for _, why := range out.Failed[:min(3, len(out.Failed))] {
		fmt.Fprintf(to, "  failed in %d: %s\n", why.Times, why.Task)
	}
	fmt.Fprintf(to, "starts: %.2f a task on average\n", float64(out.Starts)/float64(max(out.Histories*out.Tasks, 1)))
	fmt.Fprintf(to, "time: %v on average, from %v to %v\n", out.Mean.Round(time.Second), out.Least.Round(time.Second), out.Most.Round(time.Second))
	for i, r := range out.Repeated {
		if i == 5 {
			break
		}
		if i == 0 {
			fmt.Fprintln(to, "repeated most:")
		}
		fmt.Fprintf(to, "  %-30s %.2f times a history\n", r.Task, float64(r.Times)/float64(out.Histories))
	}
	for _, f := range out.Failures {
		fmt.Fprintf(to, "VIOLATION %v\n", f.Violation)
	}
}
