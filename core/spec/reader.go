package spec

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

// reader turns the nodes of one text into a definition. Both formats give it
// the same nodes.
type reader struct {
	file    string
	text    []byte
	options Options
	limits  Limits
	// taskTable and shellTable are looked into for every task.
	taskTable  []key[*taskTarget]
	shellTable []shellKey

	definition   dag.Definition
	topPlaces    map[dag.Field]place
	root         place
	tasks        []taskSource
	dependencies int

	// partSize is how much text of the task list is parsed at once.
	partSize int
	// base is added to the line of every node: nodes may come from a part of
	// the text that was parsed alone.
	base int
	// unusualBreaks tells how lines are counted.
	unusualBreaks bool
	// spent is what has been visited so far, against aliases that make much
	// out of little.
	spent int
	// stopped is set when a limit was met: nothing more is worth reading.
	stopped bool

	diagnostics Diagnostics
	// full is set when there are more diagnostics than anybody wants to read.
	full bool
	// located counts the faults of conditions that were given an exact place.
	located int
	// faulted has the paths that a diagnostic was given for, so that one slip
	// is not reported twice.
	faulted map[dag.Path]bool
}

// taskSource remembers where the parts of a task stand in the text.
type taskSource struct {
	item, name, queue, policy, retries, timeout, command place
	kwargs, dependencies                                 []place
	condition                                            *scalarSource
}

// scalarSource is what it takes to find a place inside of a scalar again.
type scalarSource struct {
	at    place
	style yaml.Style
	value string
}

func newReader(name string, text []byte, o *Options) *reader {
	r := &reader{
		file:       name,
		text:       text,
		partSize:   partSize,
		taskTable:  taskKeys(),
		shellTable: shellKeys(),
		topPlaces:  make(map[dag.Field]place),
		faulted:    make(map[dag.Path]bool),
	}
	if o != nil {
		r.options = *o
	}
	r.limits = r.options.Limits.withDefaults()
	return r
}

// restart forgets everything that was read, to read the text another way.
func (r *reader) restart() {
	fresh := newReader(r.file, r.text, &r.options)
	fresh.unusualBreaks = r.unusualBreaks
	*r = *fresh
}

func (r *reader) at(n *yaml.Node) place {
	return place{int32(n.Line + r.base), int32(n.Column)}
}

func (r *reader) report(d Diagnostic) {
	d.File = r.file
	if len(r.diagnostics) == maxDiagnostics {
		r.full, r.stopped = true, true
		return
	}
	r.diagnostics = append(r.diagnostics, d)
}

func (r *reader) reportAt(p place, message, remedy string) {
	r.report(Diagnostic{Line: int(p.line), Column: int(p.column), Message: message, Remedy: remedy})
}

// fault reports an error at n, which is the part of the definition that path
// names.
func (r *reader) fault(n *yaml.Node, path dag.Path, message, remedy string) {
	p := r.at(n)
	r.faulted[path] = true
	r.report(Diagnostic{Line: int(p.line), Column: int(p.column), Task: r.taskName(path.Task), Path: path.String(), Message: message, Remedy: remedy})
}

// stop reports that a limit was met and ends the reading.
func (r *reader) stop(n *yaml.Node, message, remedy string) {
	if !r.stopped {
		r.reportAt(r.at(n), message, remedy)
	}
	r.stopped = true
}

func (r *reader) taskName(task int) string {
	if task < 0 || task >= len(r.definition.Tasks) {
		return ""
	}
	return r.definition.Tasks[task].Name
}

// readTop reads the keys of the workflow itself. streamed is the value of
// `tasks` where the tasks are read elsewhere, else nil.
func (r *reader) readTop(root, streamed *yaml.Node) {
	top := dag.Top("")
	r.root = r.at(root)
	if root.Kind != yaml.MappingNode {
		r.fault(root, top, "the file holds a "+kindOf(root)+" where the workflow should be", "begin with `name: my-workflow` and `tasks:`")
		r.stopped = true
		return
	}
	readKeys(r, root, top, "the workflow", topKeys(), &topTarget{&r.definition, streamed})
}

// readTask reads one element of `tasks`.
func (r *reader) readTask(n *yaml.Node) {
	index := len(r.definition.Tasks)
	if index == r.limits.MaxTasks {
		r.stop(n, fmt.Sprintf("the workflow has more than %d tasks", r.limits.MaxTasks), splitRemedy)
		return
	}
	r.definition.Tasks = append(r.definition.Tasks, dag.Task{})
	r.tasks = append(r.tasks, taskSource{item: r.at(n)})
	m := r.resolve(n)
	if m.Kind != yaml.MappingNode {
		for _, f := range []dag.Field{dag.FieldName, dag.FieldKwargs} {
			r.faulted[dag.At(index, f)] = true
		}
		r.fault(n, dag.At(index, ""), "a task is a "+kindOf(m)+", not a map", "write `- name: my-task` and its other keys below")
		return
	}
	t := &taskTarget{index, &r.definition.Tasks[index], &r.tasks[index]}
	t.task.Name = findName(m)
	readKeys(r, m, dag.At(index, ""), "the task", r.taskTable, t)
}

// findName looks for the name before the other keys are read, so that what is
// wrong with them can say whose they are.
func findName(m *yaml.Node) string {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if v := m.Content[i+1]; m.Content[i].Value == string(dag.FieldName) && v.Kind == yaml.ScalarNode && !isNull(v) {
			return v.Value
		}
	}
	return ""
}
