package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

// finish validates what was read and returns the result of Parse.
func (r *reader) finish() (*dag.Definition, Diagnostics) {
	if r.root != (place{}) && !r.stopped {
		r.validate()
		for i := range r.definition.Tasks {
			r.checkCommand(i)
			r.checkCondition(i)
		}
	}
	failed := r.diagnostics.HasErrors() || r.full
	if !failed {
		for _, note := range dag.ApplyDefaults(&r.definition) {
			r.problem(note, Note)
		}
	}
	slices.SortStableFunc(r.diagnostics, byPlace)
	showLines(r.diagnostics, r.text, r.unusualBreaks)
	if r.full {
		r.diagnostics = append(r.diagnostics, Diagnostic{File: r.file, Message: "there are more faults than are shown", Remedy: "correct the ones above first"})
	}
	if failed {
		return nil, r.diagnostics
	}
	return &r.definition, r.diagnostics
}

// validate reports what dag finds and is not the consequence of a fault that is
// reported already.
func (r *reader) validate() {
	for _, p := range dag.Validate(&r.definition) {
		if !r.consequence(p.Path) {
			r.problem(p, Error)
		}
	}
}

// consequence reports whether a problem at p only follows from another fault: of
// the same field, of the keys of a task that then has no name, or of the
// dependencies that dep_policy counts.
func (r *reader) consequence(p dag.Path) bool {
	if p.Element >= 0 {
		return false
	}
	switch p.Field {
	case dag.FieldName:
		if r.faulted[dag.At(p.Task, "")] && r.taskName(p.Task) == "" && p.Task >= 0 {
			return true
		}
	case dag.FieldDepPolicy:
		if r.faulted[dag.At(p.Task, dag.FieldDependsOn)] {
			return true
		}
	}
	return r.faulted[p]
}

func (r *reader) problem(p dag.Problem, severity Severity) {
	at := r.placeOfPath(p.Path)
	message := p.Message
	if p.Earlier != nil {
		first := r.placeOfPath(*p.Earlier)
		message += fmt.Sprintf(", first in line %d", first.line)
		if first == at && p.Path.Task >= 0 {
			at = r.tasks[p.Path.Task].item // both come from one anchor
		}
	}
	r.report(Diagnostic{
		Severity: severity, Line: int(at.line), Column: int(at.column),
		Task: r.taskName(p.Path.Task), Path: p.Path.String(), Message: message, Remedy: p.Remedy,
	})
}

// placeOfPath returns where the part of the definition that p names stands, or
// the nearest thing around it.
func (r *reader) placeOfPath(p dag.Path) place {
	if p.Task < 0 {
		if at, ok := r.topPlaces[p.Field]; ok {
			return at
		}
		return r.root
	}
	t := &r.tasks[p.Task]
	at := place{}
	switch p.Field {
	case dag.FieldName:
		at = t.name
	case dag.FieldQueue:
		at = t.queue
	case dag.FieldDepPolicy:
		at = t.policy
	case dag.FieldNumRetries:
		at = t.retries
	case dag.FieldTimeout:
		at = t.timeout
	case dag.FieldDependsOn:
		if 0 <= p.Element && p.Element < len(t.dependencies) {
			at = t.dependencies[p.Element]
		}
	case dag.FieldKwargs:
		if 0 <= p.Element && p.Element < len(t.kwargs) {
			at = t.kwargs[p.Element]
		}
	}
	if at == (place{}) {
		at = t.item
	}
	return at
}

var braces = regexp.MustCompile(`(^|[^$])\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// checkCommand reports a task without a command, and names in braces that look
// as if somebody would fill them in.
func (r *reader) checkCommand(i int) {
	t := &r.definition.Tasks[i]
	raw, ok := t.Kwarg("cmd")
	if !ok {
		if !r.options.AllowMissingCommand && !r.faulted[dag.At(i, dag.FieldKwargs)] {
			r.problem(dag.Problem{Path: dag.At(i, dag.FieldKwargs), Message: "the task has no command", Remedy: missingCommandRemedy(t)}, Error)
		}
		return
	}
	for _, match := range braces.FindAllSubmatch(raw, -1) {
		name := string(match[2])
		if _, ok := t.Kwarg(name); ok && !r.isShellKey(name) {
			at := r.tasks[i].command
			r.report(Diagnostic{
				Severity: Warning, Line: int(at.line), Column: int(at.column), Task: t.Name, Path: dag.At(i, dag.FieldKwargs).String() + ".cmd",
				Message: "nothing is filled in for {" + name + "} in cmd, although kwargs has that key",
				Remedy:  "write the value into cmd, or pass it as a variable: `env: {" + envName(name) + ": ...}` and $" + envName(name),
			})
		}
	}
}

func envName(key string) string {
	return strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

func (r *reader) isShellKey(name string) bool {
	return slices.ContainsFunc(r.shellTable, func(k shellKey) bool { return k.name == name })
}

func missingCommandRemedy(t *dag.Task) string {
	for _, k := range t.Kwargs {
		if foreignKey(k.Key) == foreignKey("cmd") {
			return "rename " + k.Key + " to cmd"
		}
	}
	return "add cmd to its kwargs, such as `kwargs: {cmd: \"python train.py\"}`"
}

// maxLocated bounds how many faults of conditions get their exact place.
const maxLocated = 100

func (r *reader) checkCondition(i int) {
	t, source := &r.definition.Tasks[i], r.tasks[i].condition
	if source == nil {
		return
	}
	path := dag.At(i, dag.FieldCondition).String()
	if r.options.CheckCondition == nil {
		r.report(Diagnostic{
			Line: int(source.at.line), Column: int(source.at.column), Task: t.Name, Path: path,
			Message: "conditions are not supported here", Remedy: "remove the condition",
		})
		return
	}
	for _, f := range r.options.CheckCondition(t.Condition, t.DependsOn) {
		at := source.at
		// Each search for a line may pass the whole text.
		if r.located < maxLocated {
			r.located++
			at = r.placeInScalar(source, f.Line, f.Column)
		}
		r.report(Diagnostic{
			Line: int(at.line), Column: int(at.column), Task: t.Name, Path: path,
			Message: "condition: " + f.Message, Remedy: f.Hint,
		})
	}
}

// placeInScalar returns the place in the file of a place in the text of a
// scalar. Where the text was folded or has escapes, it is the scalar's own.
func (r *reader) placeInScalar(s *scalarSource, line, column int) place {
	if line < 1 || column < 1 {
		return s.at
	}
	raw := lineAt(r.text, int(s.at.line), r.unusualBreaks)
	at := place{s.at.line, s.at.column + int32(column) - 1}
	switch {
	case s.style&yaml.LiteralStyle != 0:
		at.line = s.at.line + int32(line)
		raw = lineAt(r.text, int(at.line), r.unusualBreaks)
		at.column = int32(len(raw)-len(strings.TrimLeft(raw, " "))) + int32(column)
		return at
	case line > 1 || strings.ContainsRune(s.value, '\n') || s.style&yaml.FoldedStyle != 0:
		return s.at
	case s.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		at.column++
	}
	// The text stands in the line letter by letter, or its columns mean nothing.
	if after := []rune(raw); int(at.column-1) <= len(after) {
		start := int(at.column) - column
		if strings.HasPrefix(string(after[start:]), s.value) {
			return at
		}
	}
	return s.at
}

// lineAt returns line number line of text, without its end.
func lineAt(text []byte, line int, unusual bool) string {
	for at := 1; at < line && len(text) > 0; at++ {
		_, next := nextBreak(text, unusual)
		text = text[next:]
	}
	end, _ := nextBreak(text, unusual)
	if end < 0 {
		end = len(text)
	}
	return string(text[:end])
}
