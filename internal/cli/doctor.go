package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
	"jobq/internal/config"
	"jobq/internal/local"
)

// The levels of a finding.
const (
	levelOK   = "ok"
	levelInfo = "info"
	levelWarn = "warn"
	levelFail = "fail"
)

// checkRun is the check of runs of this machine.
const checkRun = "run"

// finding is one thing that doctor saw.
type finding struct {
	// Check says what was looked at, Subject at whose.
	Check   string `json:"check"`
	Level   string `json:"level"`
	Subject string `json:"subject,omitempty"`
	Message string `json:"message"`
	// Next is the command to type next.
	Next string `json:"next,omitempty"`
}

// doctorAnswer is the answer of doctor --json.
type doctorAnswer struct {
	Prefix string `json:"prefix"`
	// Healthy says that no finding has the level "fail".
	Healthy  bool      `json:"healthy"`
	Findings []finding `json:"findings"`
}

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := a.command(verb{
		use: "doctor", short: "Find out what is stuck, and say what to do", group: groupLook,
		long: `Look for what keeps workflows from going on: no coordinator, no worker for a queue, old messages,
poison messages, stuck or unreadable workflows. Each finding comes with the next command to type. The
exit code is 1 if something is wrong.`,
		run: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(s *session) error {
				d := &doctor{a: a, s: s, now: time.Now()}
				if err := d.examine(cmd.Context()); err != nil {
					return err
				}
				return a.printFindings(d.answer(), asJSON)
			})
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

const (
	// oldMessage is the age from which a message in the inbox means that nobody
	// reads it.
	oldMessage = time.Minute
	// maxExamined bounds how many open workflows are read.
	maxExamined = 1000
	// overdue is for how long a due workflow may wait for a sweep.
	overdue = 10 * time.Minute
)

// doctor collects findings.
type doctor struct {
	a        *app
	s        *session
	now      time.Time
	findings []finding

	members []port.Member
	open    []port.StoredRow
	// shared counts the open workflows that need a coordinator, waiting the queues
	// that they have tasks on.
	shared  int
	waiting map[string]bool
}

func (d *doctor) add(level, check, subject, next, format string, args ...any) {
	d.findings = append(d.findings, finding{check, level, subject, fmt.Sprintf(format, args...), next})
}

func (d *doctor) answer() doctorAnswer {
	answer := doctorAnswer{Prefix: d.s.place, Healthy: true, Findings: d.findings}
	for _, f := range d.findings {
		if f.Level == levelFail {
			answer.Healthy = false
		}
	}
	return answer
}

// examine makes every check. The error is about the store as a whole.
func (d *doctor) examine(ctx context.Context) error {
	var err error
	if d.members, err = d.s.store.Presence.Members(ctx); err != nil {
		return err
	}
	filter := port.Filter{Limit: maxExamined}
	for _, s := range state.WorkflowStatuses() {
		if !s.Ended() {
			filter.Status = append(filter.Status, s.String())
		}
	}
	var more string
	if d.open, more, err = d.s.store.Index.List(ctx, filter); err != nil {
		return err
	}
	d.add(levelOK, "store", d.s.place, "", "it can be read; %s", plural(len(d.open), "workflow has not ended", "workflows have not ended"))
	if more != "" {
		d.add(levelInfo, "workflows", d.s.place, "", "there are more open workflows than the %d that were looked at, the newest", maxExamined)
	}
	d.waiting = map[string]bool{}
	for _, row := range d.open {
		if err := d.examineWorkflow(ctx, row); err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context) error{d.coordinators, d.inbox, d.queues} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *doctor) examineWorkflow(ctx context.Context, row port.StoredRow) error {
	id := row.Workflow
	w, err := d.s.loadState(ctx, id)
	switch code := fault.CodeOf(err); {
	case err == nil:
	case code == fault.NotFound:
		return nil // a row that is ahead of its workflow, or behind its purge
	case code == fault.Corrupt || code == fault.TooNew:
		d.add(levelFail, "workflow", id, "", "its state cannot be used: %v", err)
		return nil
	default:
		return err
	}
	if w.Namespace != "" {
		return d.examineRun(ctx, w)
	}
	d.shared++
	for _, q := range row.Queues {
		d.waiting[q] = true
	}
	idle := d.now.Sub(w.UpdatedAt)
	stuckAfter := time.Duration(d.a.values.Int(config.StaleRunningMinutes)) * time.Minute
	switch {
	case w.Status == state.WorkflowPending && idle > d.a.values.Duration(config.StalePending):
		d.add(levelWarn, "workflow", id, d.a.commandLine("coordinator"), "pending for %s: no coordinator has taken it up", seconds(idle))
	case w.Status == state.WorkflowRunning && idle > stuckAfter:
		d.add(levelWarn, "workflow", id, d.a.commandLine("tasks", id, "--status", "running,ready"), "nothing has happened for %s", seconds(idle))
	}
	return nil
}

// examineRun looks for the process of a run of this machine.
func (d *doctor) examineRun(ctx context.Context, w *state.Workflow) error {
	holder, err := d.s.store.Leases.Holder(ctx, local.Lease(w.ID))
	if err != nil {
		return err
	}
	if holder == "" {
		d.add(levelInfo, checkRun, w.ID, d.a.commandLine("run", "--resume", w.ID), "stopped before its end, %s ago", age(d.now, w.UpdatedAt))
	}
	return nil
}

func (d *doctor) coordinators(ctx context.Context) error {
	late, err := d.s.store.Index.DueBefore(ctx, d.now.Add(-overdue), 1)
	if err != nil {
		return err
	}
	switch {
	case hasKind(d.members, kindCoordinator):
		d.add(levelOK, "coordinator", d.s.place, "", "it is running")
	case d.shared > 0:
		d.add(levelFail, "coordinator", d.s.place, d.a.commandLine("coordinator"), "none is running, and %s",
			plural(d.shared, "submitted workflow waits for one", "submitted workflows wait for one"))
	default:
		d.add(levelInfo, "coordinator", d.s.place, "", "none is running, and none is needed")
	}
	if len(late) > 0 && d.shared > 0 {
		d.add(levelWarn, "sweep", late[0].Workflow, d.a.commandLine("coordinator"), "due since %s, and no sweep has come by", age(d.now, late[0].DueAt))
	}
	return nil
}

func (d *doctor) inbox(ctx context.Context) error {
	q := d.s.store.Queues.Queue(d.s.inbox)
	if err := d.poison(ctx, q); err != nil {
		return err
	}
	messages, err := q.Peek(ctx, 1)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if len(messages) > 0 && !messages[0].Sent.IsZero() && d.now.Sub(messages[0].Sent) > oldMessage {
		d.add(levelWarn, "inbox", q.Name(), d.a.commandLine("coordinator"), "its first message is %s old: no coordinator reads it", age(d.now, messages[0].Sent))
	}
	return nil
}

func (d *doctor) queues(ctx context.Context) error {
	live := liveQueues(d.members)
	for _, name := range sortedKeys(d.waiting) {
		q := d.s.store.Queues.Queue(name)
		if err := d.poison(ctx, q); err != nil {
			return err
		}
		if live[name] > 0 {
			d.add(levelOK, "queue", name, "", "%s", plural(live[name], "slot of live workers", "slots of live workers"))
			continue
		}
		n, err := countOf(ctx, q)
		if err != nil {
			return err
		}
		if n > 0 {
			storage, _, _ := parsePlace("", "", d.s.place)
			d.add(levelFail, "queue", name, d.a.commandLine("worker", storage+"/"+name), "%s, and no worker serves it", plural(n, "message waits", "messages wait"))
		}
	}
	return nil
}

// poison tells of messages that nobody could use.
func (d *doctor) poison(ctx context.Context, q port.Queue) error {
	poison := q.PoisonQueue()
	n, err := countOf(ctx, poison)
	if err != nil || n == 0 {
		return err
	}
	why := ""
	if messages, err := poison.Peek(ctx, 1); err == nil && len(messages) > 0 && messages[0].Reason != "" {
		why = ", the first because " + line(messages[0].Reason)
	}
	d.add(levelWarn, "poison", poison.Name(), "", "%s%s", plural(n, "message could not be used", "messages could not be used"), why)
	return nil
}

// countOf counts the messages of a queue; one that is absent, or that cannot
// count, has none that anybody knows of.
func countOf(ctx context.Context, q port.Queue) (int, error) {
	n, err := q.Count(ctx)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return 0, nil
	}
	return n, err
}

func (a *app) printFindings(answer doctorAnswer, asJSON bool) error {
	if asJSON {
		if err := printJSON(a.out, answer); err != nil {
			return err
		}
	} else if err := a.printFindingTable(answer.Findings); err != nil {
		return err
	}
	if !answer.Healthy {
		return ended(exitFailed)
	}
	return nil
}

// maxStoppedRuns is how many stopped runs a person is shown.
const maxStoppedRuns = 3

// printFindingTable writes findings for people, what is wrong first.
func (a *app) printFindingTable(all []finding) error {
	findings := slices.Clone(all)
	grave := []string{levelFail, levelWarn, levelInfo, levelOK}
	slices.SortStableFunc(findings, func(a, b finding) int { return slices.Index(grave, a.Level) - slices.Index(grave, b.Level) })
	runs := 0
	findings = slices.DeleteFunc(findings, func(f finding) bool {
		if f.Check == checkRun {
			runs++
		}
		return f.Check == checkRun && runs > maxStoppedRuns
	})
	if more := runs - maxStoppedRuns; more > 0 {
		findings = append(findings, finding{checkRun, levelInfo, plural(more, "more run", "more runs"), "stopped too", a.commandLine("list", "--status", "pending,running")})
	}
	p := palette(a.colored(a.out))
	for _, f := range findings {
		text := fmt.Sprintf("%s  %-11s %s: %s", p.paint(fmt.Sprintf("%-4s", f.Level), levelColor(f.Level)), f.Check, f.Subject, line(f.Message))
		if f.Next != "" {
			text += "\n      next: " + f.Next
		}
		if err := a.print(text); err != nil {
			return err
		}
	}
	return nil
}
