package sim

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"jobq/core/port"
	"jobq/core/state"
)

// Run plays the history of c and judges it.
func Run(c Config) *World {
	p := &pool{}
	defer p.close()
	return run(c, p)
}

func run(c Config, p *pool) *World {
	w := newWorld(c, p)
	w.populate()
	w.s.loop(w.o.Storm, func() bool { return len(w.Violations) > 0 })
	w.calm()
	stop := false
	var look func()
	look = func() {
		if stop = w.quiet(); !stop {
			w.s.after(5*time.Second, nil, look)
		}
	}
	w.s.after(0, nil, look)
	w.s.loop(w.o.Storm+cmp.Or(w.o.Patience, 3*time.Hour), func() bool { return stop || len(w.Violations) > 0 })
	if len(w.Violations) == 0 {
		w.judge()
	}
	w.dismiss()
	w.judgePurged()
	return w
}

// populate brings everybody in.
func (w *World) populate() {
	for i := range w.o.Workloads {
		w.ledger.define(w.o.Workloads[i].Definition)
		if d := w.o.Workloads[i].Other; d != nil {
			w.ledger.define(d)
		}
	}
	for i := range w.o.Coordinators {
		w.addCoordinator(i + 1)
	}
	for i := range w.o.Workers {
		w.addWorker(i+1, false)
	}
	for i := range w.o.Foreign {
		w.addWorker(w.o.Workers+i+1, true)
	}
	for i := range w.o.Workloads {
		wl := &w.o.Workloads[i]
		w.place(&order{at: w.soon(30 * time.Second), kind: "submit", wf: wl.ID, id: "submit-" + wl.ID, workload: wl})
	}
	start, wl := w.drawTime(max(w.o.Storm, 1)), &w.o.Workloads[w.draw.IntN(len(w.o.Workloads))]
	for i := range w.o.Commands {
		o := w.drawOrder(fmt.Sprintf("c%d", i+1))
		if w.o.Burst {
			o.at, o.wf = start+w.drawTime(3*time.Second), wl.ID
			if o.workload.ID != wl.ID {
				o.workload = wl
			}
			o.tasks = []string{wl.Definition.Tasks[w.draw.IntN(len(wl.Definition.Tasks))].Name}
		}
		w.place(o)
	}
	for i := range w.o.orders {
		o := &w.o.orders[i]
		if o.workload == nil {
			o.workload = &w.o.Workloads[0]
		}
		w.place(o)
	}
	for f := range faultKinds {
		w.schedule(f)
	}
	for i := range w.workers {
		w.evict(i)
	}
	for _, put := range w.o.incidents {
		put(w)
	}
}

func (w *World) drawTime(most time.Duration) time.Duration {
	return time.Duration(w.draw.Int64N(int64(most)))
}

// drawOrder draws a command of a caller.
func (w *World) drawOrder(id string) *order {
	wl := &w.o.Workloads[w.draw.IntN(len(w.o.Workloads))]
	o := &order{at: w.drawTime(w.o.Storm + time.Minute), wf: wl.ID, id: id, workload: wl}
	kinds := []string{"cancel", "cancel", "cancel", "retry", "retry", "retry", "rerun", "mark", "purge", "submit", "flag", "flag", "rubbish"}
	o.kind = kinds[w.draw.IntN(len(kinds))]
	if o.kind == "submit" && wl.Other != nil && w.draw.IntN(2) == 0 {
		o.workload = &Workload{ID: wl.ID, Definition: wl.Other}
	}
	tasks := wl.Definition.Tasks
	o.tasks = []string{tasks[w.draw.IntN(len(tasks))].Name}
	o.downstream = w.draw.IntN(2) == 0
	o.to = []state.TaskStatus{state.Completed, state.Skipped}[w.draw.IntN(2)]
	return o
}

// schedule lets the faults that come by time happen now and then in the storm.
func (w *World) schedule(f Fault) {
	mean := map[Fault]time.Duration{
		QueueMissing: time.Minute, QueueCleared: 4 * time.Minute, OutputsDown: 3 * time.Minute,
		SendsDown:     4 * time.Minute,
		MachineFreeze: 3 * time.Minute, MachineLost: 2 * time.Minute, WorkerStop: 2 * time.Minute,
	}[f]
	if mean == 0 || !w.o.Faults.Has(f) {
		return
	}
	w.s.after(w.drawTime(2*mean), nil, func() {
		if w.s.now >= w.o.Storm {
			return
		}
		w.strike(f)
		w.schedule(f)
	})
}

func (w *World) strike(f Fault) {
	switch f {
	case OutputsDown:
		w.outputsDownUntil = w.s.now + w.drawTime(5*time.Minute)
	case SendsDown:
		w.sendsDownUntil = w.s.now + w.drawTime(5*time.Minute)
	case QueueMissing, QueueCleared:
		names := w.ledger.queueNames()
		name := names[w.draw.IntN(len(names))]
		if w.draw.IntN(2) == 0 {
			name = inbox // where most can be lost
		}
		w.count(f)
		w.ledger.harmAll()
		if name == inbox {
			w.ledger.unqueue("")
		}
		if n, err := w.admin.Queues.Queue(name).Clear(context.Background()); err == nil && w.recording() {
			w.lines = append(w.lines, fmt.Sprintf("%12v  queue %s: %s, %d messages gone", w.s.now, name, f, n))
		}
		w.missing[name] = f == QueueMissing
	default:
		if len(w.workers) > 0 {
			w.workers[w.draw.IntN(len(w.workers))].strike(f)
		}
	}
}

// calm ends the storm.
func (w *World) calm() {
	w.outputsDownUntil, w.sendsDownUntil = 0, 0
	w.upgrade()
	if !w.o.NoWorkers {
		return
	}
	for _, wp := range w.workers {
		wp.p.onStop = nil
		wp.loseMachine(wp.p)
	}
	for i := range w.o.Workloads {
		wl := &w.o.Workloads[i]
		w.place(&order{at: w.s.now + time.Minute, kind: "cancel", wf: wl.ID, id: "last-" + wl.ID, workload: wl})
	}
}

// dismiss ends everybody, so that nothing of the world is left.
func (w *World) dismiss() {
	w.ended = true
	for _, cp := range w.coordinators {
		w.kill(cp.p, "")
	}
	for _, wp := range w.workers {
		w.kill(wp.p, "")
	}
	for _, p := range w.all {
		p.onStop = nil
		w.kill(p, "")
	}
	for len(w.s.ready) > 0 {
		w.s.step(w.s.next())
	}
}

func (w *World) endingOf(k port.RecordKey) Ending {
	for i := range w.o.Workloads {
		if w.o.Workloads[i].ID == k.Workflow {
			return w.ending(&w.o.Workloads[i], k.Task, k.Attempt)
		}
	}
	return Ending{}
}

// logger puts what a program tells into the history, where that is kept.
func (w *World) logger(p *process) *slog.Logger {
	if !w.recording() {
		return nil
	}
	return slog.New(historyLog{w: w, p: p})
}

// tellState adds a state line to the history.
func (w *World) tellState(p *process, wf *workflow, s *state.Workflow) {
	line := fmt.Sprintf("%12v  %-14s => %s v%d e%d %s", w.s.now, p.name, s.ID, s.Version, s.Epoch, s.Status)
	if d := w.ledger.definitions[s.Definition]; d != nil && len(s.TaskStatus) == len(d.Tasks) {
		for t, status := range s.TaskStatus {
			line += fmt.Sprintf(" %s:%c%d", d.Tasks[t].Name, status, s.Attempt[t])
		}
	}
	w.lines = append(w.lines, line)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
