package spec

import (
	"fmt"
	"slices"
	"strings"

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

// resolve returns the node that n stands for, and accounts for every visit: a
// text without aliases costs at most twice its length, and aliases may make ten
// times as much of it, within the limit of bytes.
func (r *reader) resolve(n *yaml.Node) *yaml.Node {
	target := n
	if n.Kind == yaml.AliasNode {
		target = n.Alias
	}
	r.spent += 1 + len(target.Value)
	length := int64(len(r.text))
	if int64(r.spent) > max(2*length, min(10*length, r.limits.MaxBytes))+smallExpansion {
		r.stop(n, "the aliases of the file expand to more than they may", "write the values out, or use fewer aliases")
	}
	return target
}

// smallExpansion is what aliases may always add, in bytes.
const smallExpansion = 1 << 20

// pair is an entry of a map; the value is resolved.
type pair struct{ key, value *yaml.Node }

// pairs returns the entries of map m in the order of the text, with the entries
// of merge keys where those stand. What is written in m itself goes before what
// is merged, and an earlier merge before a later one. what names m in messages.
func (r *reader) pairs(m *yaml.Node, path dag.Path, what string) []pair {
	return r.pairsAt(m, path, what, 0)
}

func (r *reader) pairsAt(m *yaml.Node, path dag.Path, what string, depth int) []pair {
	if depth > r.limits.MaxDepth {
		r.stop(m, fmt.Sprintf("merge keys are nested deeper than %d levels", r.limits.MaxDepth), "an alias may not contain itself")
		return nil
	}
	all := make([]pair, 0, len(m.Content)/2)
	own := r.ownKeys(m, path, what)
	merged := false
	for i := 0; i+1 < len(m.Content) && !r.stopped; i += 2 {
		key, value := r.resolve(m.Content[i]), r.resolve(m.Content[i+1])
		if isMerge(key) {
			if merged {
				continue // the repetition is reported already
			}
			merged = true
			for _, p := range r.mergedPairs(value, path, depth) {
				if _, ok := own.find(p.key.Value); !ok {
					own.add(p.key.Value, -1)
					all = append(all, p)
				}
			}
			continue
		}
		if first, ok := own.find(key.Value); ok && first == i {
			all = append(all, pair{key, value})
		}
	}
	return all
}

// mergedPairs returns the entries of the map or the list of maps behind <<.
func (r *reader) mergedPairs(value *yaml.Node, path dag.Path, depth int) []pair {
	switch value.Kind {
	case yaml.MappingNode:
		return r.pairsAt(value, path, "the merged map", depth+1)
	case yaml.SequenceNode:
		var all []pair
		for _, element := range value.Content {
			m := r.resolve(element)
			if r.stopped {
				return nil
			}
			if m.Kind != yaml.MappingNode {
				r.fault(element, path, "an entry of the merge key << is not a map", "name maps by their aliases")
				continue
			}
			all = append(all, r.pairsAt(m, path, "the merged map", depth+1)...)
		}
		return all
	}
	r.fault(value, path, "the merge key << needs a map or a list of maps", "name a map by its alias, such as `<<: *base`")
	return nil
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Tag == "!!merge"
}

// keySet holds where each key of a map stands first. Most maps have a few keys,
// for which a list is faster than a map.
type keySet struct {
	few  []keyPlace
	many map[string]int
}

type keyPlace struct {
	key string
	at  int
}

// manyKeys is where a map begins to pay.
const manyKeys = 12

func newKeySet(n int) *keySet {
	if n > manyKeys {
		return &keySet{many: make(map[string]int, n)}
	}
	return &keySet{few: make([]keyPlace, 0, n)}
}

func (s *keySet) find(key string) (at int, ok bool) {
	if s.many != nil {
		at, ok = s.many[key]
		return at, ok
	}
	for _, k := range s.few {
		if k.key == key {
			return k.at, true
		}
	}
	return 0, false
}

// add records that key stands at position at of the map's content, -1 if it
// was merged into it.
func (s *keySet) add(key string, at int) {
	if s.many != nil {
		s.many[key] = at
		return
	}
	if s.few = append(s.few, keyPlace{key, at}); len(s.few) > manyKeys {
		s.many = make(map[string]int, 2*len(s.few))
		for _, k := range s.few {
			s.many[k.key] = k.at
		}
	}
}

// ownKeys collects the keys that are written in m itself and reports those that
// cannot be one.
func (r *reader) ownKeys(m *yaml.Node, path dag.Path, what string) *keySet {
	keys := newKeySet(len(m.Content) / 2)
	merge := -1
	for i := 0; i+1 < len(m.Content) && !r.stopped; i += 2 {
		key := m.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			r.fault(m.Content[i], path, "a key of "+what+" is a "+kindOf(key)+", not a text", "write the key as plain text")
		case isMerge(key) && merge < 0:
			merge = i
		case isMerge(key):
			r.fault(m.Content[i], path, fmt.Sprintf("the merge key << is given twice in %s, first in line %d", what, m.Content[merge].Line+r.base), "write `<<: [*one, *other]`")
		case key.Value == "":
			r.fault(m.Content[i], path, "a key of "+what+" is empty", "name the key")
		default:
			first, repeated := keys.find(key.Value)
			if !repeated {
				keys.add(key.Value, i)
				continue
			}
			r.fault(m.Content[i], path, fmt.Sprintf("the key %s is given twice in %s, first in line %d", dag.Quote(key.Value), what, m.Content[first].Line+r.base), "remove one of them")
		}
	}
	return keys
}

// kindOf says what n is in the words of people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "map"
	case yaml.SequenceNode:
		return "list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null value"
	case "!!bool":
		return "true/false value"
	case "!!int", "!!float":
		return "number"
	}
	return "text"
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

// readKeys reads the entries of m by the table keys into target.
func readKeys[T any](r *reader, m *yaml.Node, path dag.Path, what string, keys []key[T], target T) {
	for _, p := range r.pairs(m, path, what) {
		if r.stopped {
			return
		}
		k := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == p.key.Value })
		if k < 0 {
			r.unknownKey(p.key, path, what, keyNames(keys))
			continue
		}
		if isNull(p.value) {
			r.nullValue(p, dag.Path{Task: path.Task, Field: keys[k].field, Element: -1}, keys[k].optional)
			continue
		}
		keys[k].read(r, p, target)
	}
}

// nullValue decides about a key whose value is null. Written out, it means
// "not given" where that is harmless, as programs write it; left empty, it is
// more likely a slip.
func (r *reader) nullValue(p pair, path dag.Path, optional bool) {
	if optional && p.value.Value != "" {
		return
	}
	remedy := "give it a value, or remove the key"
	switch path.Field {
	case dag.FieldName:
		remedy = "give it a value; a name that reads null is written in quotes"
	case dag.FieldTasks:
		remedy = "add at least one task"
	}
	r.fault(p.key, path, "the key "+dag.Quote(p.key.Value)+" has no value", remedy)
}

func keyNames[T any](keys []key[T]) []string {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].name
	}
	return names
}

// foreignKey returns what to write here for a key of other systems, or "".
func foreignKey(word string) string {
	switch word {
	case "cmd", "command", "run", "script":
		return "`kwargs: {cmd: ...}`"
	case "env", "cwd":
		return "`kwargs: {" + word + ": ...}`"
	case "needs", "dependencies", "depends", "after", "upstream":
		return "depends_on"
	case "retries", "retry", "max_retries":
		return "num_retries"
	case "if", "when":
		return "condition"
	case "trigger_rule":
		return "dep_policy"
	case "steps", "jobs":
		return "tasks"
	}
	return ""
}

func (r *reader) unknownKey(key *yaml.Node, path dag.Path, what string, known []string) {
	best, distance := "", 4
	for _, k := range known {
		if d, near := dag.Near(key.Value, k); near && d < distance {
			best, distance = k, d
		}
	}
	remedy := "the keys are " + strings.Join(known, ", ")
	foreign := foreignKey(key.Value)
	switch {
	case best != "":
		remedy = "did you mean " + best + "?"
	case strings.HasPrefix(foreign, "`") && path.Task >= 0:
		remedy = "write " + foreign
		r.faulted[dag.At(path.Task, dag.FieldKwargs)] = true
	case slices.Contains(known, foreign):
		remedy = "did you mean " + foreign + "?"
	}
	r.fault(key, path, what+" has no key "+dag.Quote(key.Value), remedy)
}
