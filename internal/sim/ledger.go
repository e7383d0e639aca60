package sim

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"jobq/core/dag"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
	"jobq/worker/protocol"
)

// ledger is what the oracles know: it sees every effect on the store in the
// order in which it happened, and every command that ran. It never looks into a
// coordinator or a worker.
type ledger struct {
	w           *World
	definitions map[string]*dag.Definition // by hash
	workflows   map[string]*workflow
	names       []string // of workflows, in the order of their submission
	attempts    map[port.RecordKey]*attempt
	// poisonable are queues that were written to.
	queues []string
	orders []*order
	// moments counts what callers did.
	moments uint64
	// rows is when each actor last read each workflow's row.
	rows map[rowKey]time.Duration
	// wakes are those that have not come yet, by who put them.
	wakes map[wakeKey][]pendingWake
}

type rowKey struct {
	proc *process
	wf   string
}

// workflow is what is known of one id.
type workflow struct {
	id string
	// acknowledged says that a caller was told of success.
	acknowledged bool
	// harmed says that something died for good that this workflow may have
	// needed.
	harmed bool
	life   int
	// since is when its present life began, born the moment of that.
	since time.Duration
	born  uint64
	s     *state.Workflow
	row   port.Row // as it was written last
	// shown is the version since which rows of the stored state show the same.
	shown uint64
	plan  *reference
	model *model
	// column says that the stored state has the column of a newer program.
	column bool
	// flagged is when the cancel that counts now was written into the state, -1 for
	// none.
	cancelled time.Duration
	endedAt   time.Duration
}

// attempt is what is known of one attempt.
type attempt struct {
	sends  int
	starts []*command
	// record is the last body that was written; ended what it says.
	record    []byte
	start     uint32
	owner     string
	ended     *msg.Ended
	free      bool
	lastWrite time.Duration
	ttl       time.Duration
	// reports are the different completions that reached the inbox or the record.
	reports []msg.Completion
	fenced  bool
	// crashes counts starts that were taken over without being given back.
	crashes int
}

func newLedger(w *World) *ledger {
	return &ledger{
		w: w, definitions: map[string]*dag.Definition{}, workflows: map[string]*workflow{},
		attempts: map[port.RecordKey]*attempt{}, rows: map[rowKey]time.Duration{}, wakes: map[wakeKey][]pendingWake{},
	}
}

func (l *ledger) workflow(id string) *workflow {
	wf := l.workflows[id]
	if wf == nil {
		wf = &workflow{id: id, cancelled: -1}
		l.workflows[id] = wf
		l.names = append(l.names, id)
	}
	return wf
}

func (l *ledger) attempt(k port.RecordKey) *attempt {
	a := l.attempts[k]
	if a == nil {
		a = &attempt{}
		l.attempts[k] = a
	}
	return a
}

// define makes a definition known that a caller will submit.
func (l *ledger) define(d *dag.Definition) {
	l.definitions[dag.Hash(d)] = d
	for i := range d.Tasks {
		if q := d.Tasks[i].Queue; !slices.Contains(l.queues, q) {
			l.queues = append(l.queues, q)
		}
	}
}

func (l *ledger) taskQueues() []string { return slices.Clone(l.queues) }

func (l *ledger) queueNames() []string { return append(l.taskQueues(), inbox) }

// unserved reports whether nobody will ever take from a queue.
func (l *ledger) unserved(string) bool {
	return l.w.o.NoWorkers || l.w.o.Workers+l.w.o.Foreign == 0
}

// sent is a message that a queue accepted.
func (l *ledger) sent(p *process, queue string, m port.Message) {
	if queue == inbox {
		l.reported(p, m)
		return
	}
	task, err := msg.DecodeTask(m.Body)
	if err != nil {
		l.w.violate("messages decode", "%s sent a task message that cannot be read: %v", p.name, err)
		return
	}
	key := port.RecordKey{Workflow: task.Workflow, Task: task.Name, Attempt: max(task.Attempt, 1)}
	a := l.attempt(key)
	a.sends++
	if p.role != coordinatorRole && p.role != callerRole {
		return
	}
	wf := l.workflows[task.Workflow]
	if wf == nil || wf.s == nil {
		l.w.violate("saved before sent", "%s sent %s of a workflow that has no state", p.name, recordKey(key))
		return
	}
	if wf.s.Status == state.WorkflowPurged {
		return
	}
	t := wf.plan.task(task.Name)
	switch {
	case t < 0:
		l.w.violate("saved before sent", "%s sent %s, which is no task", p.name, recordKey(key))
	case wf.s.Attempt[t] < task.Attempt && task.Epoch >= wf.s.BornEpoch:
		l.w.violate("saved before sent", "%s sent %s, but the state has attempt %d", p.name, recordKey(key), wf.s.Attempt[t])
	}
}

// reported notes a completion that reached the inbox.
func (l *ledger) reported(p *process, m port.Message) {
	if p.copies != nil {
		p.copies[string(m.Body)]++
	}
	in, err := msg.DecodeInbox(m.Body)
	switch {
	case err != nil && strings.HasPrefix(m.ID, "rubbish-"):
	case err != nil:
		l.w.violate("messages decode", "a message of the inbox cannot be read: %v", err)
	case in.Command != nil:
		l.queued(in.Command.ID)
	case in.Wake != nil:
		l.woken(p, in.Wake.Workflow, m)
	case in.Completion != nil:
		c := in.Completion
		key := port.RecordKey{Workflow: c.Workflow, Task: c.Task, Attempt: max(c.Attempt, 1)}
		a := l.attempt(key)
		if p.role == workerRole {
			l.reportedBy(p, key, a, c)
		}
		a.report(*c)
	}
}

// reportedBy judges a report of a worker of ours: the end must be in the record
// before, where it survives everything.
func (l *ledger) reportedBy(p *process, k port.RecordKey, a *attempt, c *msg.Completion) {
	if a.ended == nil && !l.purged(k.Workflow) {
		l.w.violate("recorded before reported", "%s reported the end of %s, which its record does not have", p.name, recordKey(k))
	}
	if c.Worker != p.name {
		l.w.path(PathReported)
	}
}

// reports tells whether m is a completion of task.
func (l *ledger) reports(m port.Message, task string) bool {
	in, err := msg.DecodeInbox(m.Body)
	return err == nil && in.Completion != nil && in.Completion.Task == task
}

// report remembers c unless it says nothing new.
func (a *attempt) report(c msg.Completion) {
	same := func(o msg.Completion) bool {
		return o.Success == c.Success && o.OutputRef == c.OutputRef && o.Reason == c.Reason
	}
	if !slices.ContainsFunc(a.reports, same) {
		a.reports = append(a.reports, c)
	}
}

// lose is a message that was accepted and is nowhere.
func (l *ledger) lose(p *process, queue string, body []byte) {
	if queue == inbox {
		if p.copies != nil {
			p.copies[string(body)]++
		}
		if in, err := msg.DecodeInbox(body); err == nil {
			l.harm(workflowOf(in))
			if in.Command != nil {
				l.queued(in.Command.ID)
				l.unqueue(in.Command.ID)
			}
		}
		return
	}
	if task, err := msg.DecodeTask(body); err == nil {
		l.harm(task.Workflow)
	}
}

func workflowOf(in msg.Inbox) string {
	switch {
	case in.Completion != nil:
		return in.Completion.Workflow
	case in.Wake != nil:
		return in.Wake.Workflow
	default:
		return in.Command.Workflow
	}
}

func (l *ledger) harm(id string) { l.workflow(id).harmed = true }

func (l *ledger) harmAll() {
	for _, id := range l.names {
		l.harm(id)
	}
}

// recorded is a write of an attempt record.
func (l *ledger) recorded(p *process, k port.RecordKey, r port.Record) {
	a := l.attempt(k)
	silence := l.w.s.now - a.lastWrite
	a.lastWrite = l.w.s.now
	if bytes.Equal(a.record, r.Body) && a.owner == r.Owner {
		return // a beat
	}
	rec, err := msg.DecodeRecord(r.Body)
	if err != nil {
		l.w.violate("messages decode", "the record %s cannot be read: %v", recordKey(k), err)
		return
	}
	switch {
	case a.ended != nil && !l.purged(k.Workflow):
		l.w.violate("an end is final", "%s changed the record of %s after it had ended", p.name, recordKey(k))
	case rec.Ended != nil && rec.Ended.Completion != nil:
		a.report(*rec.Ended.Completion)
		if rec.Ended.Completion.Reason == msg.Lost {
			l.w.path(PathCrashLimit)
		}
	case rec.Ended != nil:
		a.fenced = true
	}
	l.changedHands(p, k, a, rec, silence)
	a.record, a.owner, a.start = bytes.Clone(r.Body), r.Owner, rec.Start
	a.ended, a.free, a.ttl = rec.Ended, rec.Free, rec.TTL
}

// erased is a record that was deleted.
func (l *ledger) erased(k port.RecordKey) {
	a := l.attempt(k)
	a.record, a.owner, a.ended, a.free, a.crashes = nil, "", nil, false, 0
	if l.purged(k.Workflow) {
		a.starts = nil
	}
}

// changedHands judges a write of a record by somebody who may not be its holder.
func (l *ledger) changedHands(p *process, k port.RecordKey, a *attempt, rec msg.AttemptRecord, silence time.Duration) {
	held := a.owner != "" && !a.free && a.ended == nil
	if held && a.owner != p.name && silence <= a.ttl {
		l.w.violate("only the holder writes", "%s wrote the record of %s, which %s holds since %v", p.name, recordKey(k), a.owner, silence)
	}
	if held && rec.Start > a.start {
		a.crashes++
	}
	if rec.Free || rec.Start > a.start || p.name != a.owner {
		for _, c := range a.starts {
			c.excused = true
		}
	}
}

func (l *ledger) purged(id string) bool {
	wf := l.workflows[id]
	return wf != nil && (wf.life > 1 || wf.s != nil && wf.s.Status == state.WorkflowPurged)
}

// observed hears what a worker's protocol loop says of itself; it only counts.
func (l *ledger) observed(_ *process, e protocol.Event) {
	if e.Kind == protocol.GivenBack {
		l.w.path(PathGivenBack)
	}
}

func (l *ledger) rowRead(p *process, _ *actor, wf string) {
	if p.role == workerRole {
		l.rows[rowKey{p, wf}] = l.w.s.now
	}
}

// projected is a row of the index that was written: rows only go up.
func (l *ledger) projected(p *process, row port.Row) {
	wf := l.workflow(row.Workflow)
	before := wf.row
	if row.BornEpoch < before.BornEpoch || row.BornEpoch == before.BornEpoch && row.StateVersion < before.StateVersion {
		l.w.violate("the index goes up", "%s wrote the row of %s from version %d over one from version %d", p.name, row.Workflow, row.StateVersion, before.StateVersion)
	}
	wf.row = row
}

// acknowledged is a message that was removed from a queue for good.
func (l *ledger) acknowledged(p *process, queue string, d port.Delivery) {
	if queue != inbox {
		return
	}
	in, err := msg.DecodeInbox(d.Body)
	if err != nil || in.Completion == nil {
		return
	}
	if p.copies[string(d.Body)] > 0 {
		return // it was put back
	}
	c := in.Completion
	wf := l.workflows[c.Workflow]
	if wf == nil || wf.s == nil || wf.s.Status == state.WorkflowPurged {
		return
	}
	t := wf.plan.task(c.Task)
	if t >= 0 && wf.s.TaskStatus[t].Numbered() && wf.s.Attempt[t] == max(c.Attempt, 1) {
		l.w.violate("saved before acknowledged", "%s acknowledged the completion of %s/%s/%d, which the stored state still has as %s",
			p.name, c.Workflow, c.Task, c.Attempt, wf.s.TaskStatus[t])
	}
}

// late is an acknowledgement that came after the lock had ended.
func (l *ledger) late(p *process, queue string, d port.Delivery) {
	if queue != inbox || p.role != coordinatorRole {
		return
	}
	const excuses = FaultSet(1<<Pause | 1<<Slow | 1<<Throttle)
	if l.w.o.Faults&excuses == 0 && l.w.o.Network != Ragged {
		l.w.violate("acknowledged within the lock", "%s acknowledged %s after its lock had ended", p.name, d.ID)
	}
}

func (l *ledger) unfetched(p *process, s protocol.Start, ref string, err error) {
	l.w.tell(p, "input not fetched", s.RunID+" "+ref+" "+err.Error())
}

// settled reports whether all that must end has ended.
func (l *ledger) settled() bool {
	if l.w.callers > 0 {
		return false
	}
	for _, id := range l.names {
		if wf := l.workflows[id]; l.stuck(wf) != "" && !(wf.harmed && !l.w.o.Sweeps) {
			return false
		}
	}
	return true
}

// stuck says why a workflow is not at its end, empty where it is.
func (l *ledger) stuck(wf *workflow) string {
	switch {
	case wf.s == nil && wf.acknowledged:
		return "it was accepted and has no state"
	case wf.s == nil || wf.s.Status.Ended():
		return ""
	case l.unserved("") && !wf.s.CancelRequested:
		return ""
	}
	var b strings.Builder
	b.WriteString("it is " + wf.s.Status.String() + ":")
	for t, status := range wf.s.TaskStatus {
		if !status.Terminal() {
			b.WriteString(" " + wf.plan.d.Tasks[t].Name + "=" + string(status))
		}
	}
	return b.String()
}

// blobNames lists what lies below prefix.
func (l *ledger) blobNames(prefix string) []string {
	var names []string
	for name, err := range l.w.admin.Outputs.List(context.Background(), prefix) {
		if err == nil {
			names = append(names, name)
		}
	}
	return names
}

// dueLeft names a row that still asks the sweep for something, but for second
// removals and workflows that wait for workers that never come.
func (l *ledger) dueLeft() string {
	due, err := l.w.admin.Index.DueBefore(context.Background(), epoch.Add(1000*time.Hour), 1000)
	if err != nil {
		return err.Error()
	}
	for _, d := range due {
		wf := l.workflows[d.Workflow]
		open := wf != nil && wf.s != nil && !wf.s.Status.Ended()
		if d.Key != d.Workflow+"!" && !(d.Key == d.Workflow && open) {
			return d.Key
		}
	}
	return ""
}

// attemptKeys lists the attempts in a fixed order.
func (l *ledger) attemptKeys() []port.RecordKey {
	return slices.SortedFunc(maps.Keys(l.attempts), func(a, b port.RecordKey) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt))
	})
}

func sortedTasks[V any](m map[int32]V) []int32 { return slices.Sorted(maps.Keys(m)) }
