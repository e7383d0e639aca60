package testkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
)

var rewrite = flag.Bool("rewrite", false, "write scenario files anew instead of comparing")

// Scenario plays the file at path. It must be called inside a testing/synctest
// bubble.
//
// A file is a list of blocks. A block is lines of commands, a line "----", and
// the lines that they say; an empty line ends it. A line that starts with "#" is
// for people. Every workflow that a block touches is shown at its end.
func Scenario(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlayer(t)
	var out strings.Builder
	for _, b := range parseBlocks(string(text)) {
		out.WriteString(b.head)
		if len(b.commands) == 0 {
			continue
		}
		got := p.block(t.Context(), b.commands)
		out.WriteString(strings.Join(b.commands, "\n") + "\n----\n" + got + "\n")
		if !*rewrite && got != b.want {
			t.Errorf("%s:%d: after\n%s\ngot\n%s\nwant\n%s", path, b.line, strings.Join(b.commands, "\n"), got, b.want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// block is commands with what they are to say; head is the text before them.
type block struct {
	line     int
	head     string
	commands []string
	want     string
}

func parseBlocks(text string) []block {
	var all []block
	var b block
	answers := false
	flush := func() {
		all = append(all, b)
		b, answers = block{}, false
	}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "" && len(b.commands) > 0:
			flush()
		case answers:
			b.want += line + "\n"
		case line == "----":
			answers = true
		case len(b.commands) == 0 && (line == "" || strings.HasPrefix(line, "#")):
			b.head += line + "\n"
		default:
			if len(b.commands) == 0 {
				b.line = i + 1
			}
			b.commands = append(b.commands, line)
		}
	}
	flush()
	return all
}

// player executes the commands of one scenario.
type player struct {
	t     *testing.T
	w     *World
	nodes map[string]*Node
	defs  map[string]*dag.Definition
	// downs names the operations that fail until "up".
	downs map[string]fault.Code
	out   strings.Builder
	seen  []string
}

func newPlayer(t *testing.T) *player {
	s := memory.New(memory.Options{})
	p := &player{
		t: t, nodes: map[string]*Node{}, defs: map[string]*dag.Definition{}, downs: map[string]fault.Code{},
		w: NewWorld(t, func(name string) *port.Store { return s.Process(name).Port() }),
	}
	p.w.Options.CommandPatience = 3 * time.Second
	return p
}

func (p *player) block(ctx context.Context, lines []string) string {
	p.out.Reset()
	p.seen = nil
	for i := 0; i < len(lines); i++ {
		verb, rest, _ := strings.Cut(lines[i], " ")
		if verb == "define" {
			from := i + 1
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\t") {
				i++
			}
			p.define(rest, lines[from:i+1])
			continue
		}
		do, ok := verbs[verb]
		if !ok {
			p.t.Fatalf("no verb %q; there are %v", verb, verbNames())
		}
		do(p, ctx, parseArgs(rest))
	}
	for _, wf := range p.seen {
		p.say("%s", p.w.Status(ctx, wf))
	}
	return p.out.String()
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *player) touch(wf string) {
	for _, known := range p.seen {
		if known == wf {
			return
		}
	}
	p.seen = append(p.seen, wf)
}

// node returns the coordinator that a command names with as=, started when it is
// met first. "c1" is the one that is not named.
func (p *player) node(a args) *Node {
	name := a.get("as", "c1")
	n := p.nodes[name]
	if n == nil || n.Process.Stopped() {
		n = p.w.Start(name, p.outage)
		p.nodes[name] = n
	}
	return n
}

// answer says how a call ended where that is of note.
func (p *player) answer(what string, err error) {
	if err == nil {
		return
	}
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		if e, ok := errors.AsType[*fault.Error](err); ok && errors.Unwrap(e) == nil {
			p.say("%s: %s: %s", what, fault.CodeOf(err), e)
			return
		}
	}
	p.say("%s: %s", what, describe(err))
}

// args are the words of a command: plain ones in order, and key=value.
type args struct {
	words []string
	named map[string]string
}

func parseArgs(rest string) args {
	a := args{named: map[string]string{}}
	for _, word := range fields(rest) {
		if k, v, ok := strings.Cut(word, "="); ok && !strings.ContainsAny(k, `"{`) {
			a.named[k] = strings.Trim(v, "'")
			continue
		}
		a.words = append(a.words, word)
	}
	return a
}

// fields splits at spaces outside of single quotes.
func fields(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

func (a args) get(key, otherwise string) string {
	if v, ok := a.named[key]; ok {
		return v
	}
	return otherwise
}

func (a args) word(i int) string {
	if i < len(a.words) {
		return a.words[i]
	}
	return ""
}

// task splits "w1/A" into workflow and task.
func (a args) task(i int) (wf, task string) {
	wf, task, _ = strings.Cut(a.word(i), "/")
	return wf, task
}

// completion returns the report that a command describes.
func (a args) completion(success bool) msg.Completion {
	c := msg.Completion{Success: success, OutputRef: a.get("output", "")}
	if !success {
		c.Reason = msg.Reason(a.get("reason", string(msg.Exited)))
		c.Error = a.get("error", "exit code 1")
	}
	return c
}

func (a args) command() coord.Command {
	return coord.Command{ID: a.get("id", ""), By: a.get("by", "")}
}
