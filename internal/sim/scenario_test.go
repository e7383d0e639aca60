package sim

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"encoding/json"

	"jobq/core/dag"
)

var rewrite = flag.Bool("rewrite", false, "write the scenarios of testdata anew")

// TestScenarios plays the stories of testdata on both kinds of queues. A story
// is what there is, what happens at which time, and after ---- what came of it.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			story, want, _ := strings.Cut(string(text), "----\n")
			got := ""
			for _, p := range Personalities() {
				s := parseStory(t, story)
				s.config.Personality = p
				for _, k := range s.strikes {
					k.calls = 0
				}
				w := s.play()
				for _, v := range w.Violations {
					t.Errorf("on %s: %v\n%s", p, v, strings.Join(w.Lines(), "\n"))
				}
				if result := s.result(w); got == "" {
					got = result
				} else if got != result {
					t.Errorf("on %s:\n%son the other queues:\n%s", p, result, got)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(story+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("%s ends as\n%swant\n%s", file, got, want)
			}
		})
	}
}

// story is a scenario that was read.
type story struct {
	t        *testing.T
	config   Config
	ends     map[string]Ending
	fails    map[string][]uint32
	incident []func(w *World)
	strikes  []*strike
}

// strike is "FAULT PROCESS OP FROM-TO": what happens at which calls.
type strike struct {
	fault    Fault
	process  string
	op       string
	from, to int
	calls    int
}

func parseStrike(t *testing.T, words []string) *strike {
	set, ok := ParseFaults(words[0])
	from, to, _ := strings.Cut(words[3], "-")
	k := &strike{process: words[1], op: words[2]}
	var err1, err2 error
	k.from, err1 = strconv.Atoi(from)
	k.to, err2 = strconv.Atoi(to)
	if !ok || err1 != nil || err2 != nil {
		t.Fatalf("strike %v cannot be read", words)
	}
	for f := range faultKinds {
		if set.Has(f) {
			k.fault = f
		}
	}
	return k
}

// fate is the script of the strikes.
func (s *story) fate(p *process, o op, _ string, _ bool) Fault {
	for _, k := range s.strikes {
		if !strings.HasPrefix(p.name, k.process) || strings.ReplaceAll(o.String(), " ", "-") != k.op {
			continue
		}
		if k.calls++; k.calls >= k.from && k.calls <= k.to {
			return k.fault
		}
	}
	return none
}

func parseStory(t *testing.T, text string) *story {
	s := &story{t: t, ends: map[string]Ending{}, fails: map[string][]uint32{}}
	d := &dag.Definition{Name: "story", DefaultQueue: "cpu"}
	s.config = Config{
		Network: Even, Coordinators: 1, Workers: 1, Slots: 4, Storm: 20 * time.Minute, steady: true, Record: true,
		Workloads: []Workload{{ID: "w", Definition: d, Outcome: s.ending}},
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			d.Tasks = append(d.Tasks, s.task(words))
		case words[0] == "at":
			s.at(words[1:])
		default:
			s.setting(words)
		}
	}
	return s
}

func (s *story) setting(words []string) {
	n := 0
	if len(words) > 1 {
		n, _ = strconv.Atoi(words[1])
	}
	switch words[0] {
	case "coordinators":
		s.config.Coordinators = n
	case "workers":
		s.config.Workers = n
	case "slots":
		s.config.Slots = n
	case "crash-limit":
		s.config.CrashLimit = n
	case "sweeps":
		s.config.Sweeps = true
	case "strike":
		s.strikes = append(s.strikes, parseStrike(s.t, words[1:]))
		s.config.script = s.fate
	case "again":
		s.config.again = words[1]
	case "tasks":
	default:
		s.t.Fatalf("unknown setting %q", words[0])
	}
}

// task reads "NAME < PARENT... any retries=1 lasts=10s fails=1,2 kills".
func (s *story) task(words []string) dag.Task {
	t := dag.Task{Name: words[0], Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: json.RawMessage(`"run"`)}}}
	e := Ending{Lasts: 5 * time.Second}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "<":
		case "any":
			t.DepPolicy = dag.DepPolicy{Kind: dag.Any}
		case "retries":
			t.NumRetries, _ = strconv.Atoi(value)
		case "lasts":
			e.Lasts = s.duration(value)
		case "fails":
			for n := range strings.SplitSeq(value, ",") {
				attempt, _ := strconv.ParseUint(n, 10, 32)
				s.fails[t.Name] = append(s.fails[t.Name], uint32(attempt))
			}
		case "kills":
			e.Kills = true
		default:
			t.DependsOn = append(t.DependsOn, word)
		}
	}
	s.ends[t.Name] = e
	return t
}

func (s *story) ending(task string, attempt uint32) Ending {
	e := s.ends[task]
	if slices.Contains(s.fails[task], attempt) {
		e.Code = 1
	}
	return e
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// at reads "TIME VERB ARGUMENTS".
func (s *story) at(words []string) {
	at := s.duration(words[0])
	verb, args := words[1], words[2:]
	switch verb {
	case "cancel", "retry", "purge", "submit":
		id := fmt.Sprintf("%s-%d", verb, len(s.config.orders))
		s.config.orders = append(s.config.orders, order{at: at, kind: verb, wf: "w", id: id})
		return
	}
	s.incident = append(s.incident, func(w *World) {
		w.s.after(at, nil, func() { s.happen(w, verb, args) })
	})
}

func (s *story) happen(w *World, verb string, args []string) {
	switch verb {
	case "stop-worker":
		w.workers[s.index(args)].strike(WorkerStop)
	case "lose-worker":
		w.workers[s.index(args)].strike(MachineLost)
	case "freeze-worker":
		w.workers[s.index(args)].strike(MachineFreeze)
	case "kill-coordinator":
		w.kill(w.coordinators[s.index(args)].p, "on purpose")
	case "pause-coordinator":
		w.freeze(w.coordinators[s.index(args)].p, s.duration(args[1]))
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
}

func (s *story) index(args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return n - 1
}

func (s *story) play() *World {
	p := &pool{}
	defer p.close()
	s.config.incidents = s.incident
	return run(s.config, p)
}

// result says how the workflow ended and what each task took.
func (s *story) result(w *World) string {
	wf := w.ledger.workflows["w"]
	if wf == nil || wf.s == nil {
		return "no workflow\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "w %s\n", wf.s.Status)
	for t, task := range wf.plan.d.Tasks {
		if t >= len(wf.s.TaskStatus) {
			break
		}
		starts, sends := 0, 0
		for k, a := range w.ledger.attempts {
			if k.Task == task.Name {
				starts += len(a.starts)
				sends += a.sends
			}
		}
		fmt.Fprintf(&b, "%s %s, attempt %d, %d sent, %d starts, %d of its budget used\n",
			task.Name, wf.s.TaskStatus[t], wf.s.Attempt[t], sends, starts, wf.s.Failures[t])
	}
	return b.String()
}
