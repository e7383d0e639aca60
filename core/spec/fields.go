package spec

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

// fieldResultPolicy is checked here alone, so dag has no name for it.
const fieldResultPolicy dag.Field = "result_policy"

// maxParallelism is the largest bound that makes sense to anybody.
const maxParallelism = 1_000_000

func (r *reader) readWorkflowName(p pair, t *topTarget) {
	r.topPlaces[dag.FieldName] = r.at(p.value)
	t.definition.Name, _ = r.textOf(p.value, dag.Top(dag.FieldName), "name")
}

func (r *reader) readDefaultQueue(p pair, t *topTarget) {
	t.definition.DefaultQueue = r.queueOf(p, dag.Top(dag.FieldDefaultQueue))
	r.topPlaces[dag.FieldDefaultQueue] = r.at(p.value)
}

func (r *reader) readDefaultTimeout(p pair, t *topTarget) {
	t.definition.DefaultTimeout = r.durationOf(p, dag.Top(dag.FieldDefaultTimeout))
	r.topPlaces[dag.FieldDefaultTimeout] = r.at(p.value)
}

func (r *reader) readMaxParallelism(p pair, t *topTarget) {
	t.definition.MaxParallelism = r.integerOf(p, dag.Top(dag.FieldMaxParallelism), 1, maxParallelism, "")
	r.topPlaces[dag.FieldMaxParallelism] = r.at(p.value)
}

func resultPolicies() []string {
	return []string{dag.AllTasksSucceed.String(), dag.AllSinksSucceed.String()}
}

func (r *reader) readResultPolicy(p pair, t *topTarget) {
	word, ok := r.wordOf(p, dag.Top(fieldResultPolicy), resultPolicies())
	if ok && word == dag.AllSinksSucceed.String() {
		t.definition.ResultPolicy = dag.AllSinksSucceed
	}
}

func (r *reader) readTasks(p pair, t *topTarget) {
	r.topPlaces[dag.FieldTasks] = r.at(p.key)
	if p.value == t.streamed {
		return
	}
	if p.value.Kind != yaml.SequenceNode {
		r.fault(p.value, dag.Top(dag.FieldTasks), "tasks is a "+kindOf(p.value)+", not a list", "write every task as `- name: my-task`")
		return
	}
	for _, n := range p.value.Content {
		if r.stopped {
			return
		}
		r.readTask(n)
	}
}

func (r *reader) readTaskName(p pair, t *taskTarget) {
	t.source.name = r.at(p.value)
	t.task.Name, _ = r.textOf(p.value, dag.At(t.index, dag.FieldName), "name")
}

func (r *reader) readQueue(p pair, t *taskTarget) {
	t.source.queue = r.at(p.value)
	t.task.Queue = r.queueOf(p, dag.At(t.index, dag.FieldQueue))
}

func (r *reader) readNumRetries(p pair, t *taskTarget) {
	t.source.retries = r.at(p.value)
	t.task.NumRetries = r.integerOf(p, dag.At(t.index, dag.FieldNumRetries), 0, dag.MaxNumRetries, "")
}

func (r *reader) readTimeout(p pair, t *taskTarget) {
	path := dag.At(t.index, dag.FieldTimeout)
	if t.source.timeout != (place{}) {
		r.fault(p.key, path, fmt.Sprintf("timeout and timeout_s are the same key and both are given, the other in line %d", t.source.timeout.line), "remove one of them")
		return
	}
	t.source.timeout = r.at(p.value)
	t.task.Timeout = r.durationOf(p, path)
}

func (r *reader) readCondition(p pair, t *taskTarget) {
	path := dag.At(t.index, dag.FieldCondition)
	text, ok := r.textOf(p.value, path, "condition")
	if !ok {
		return
	}
	if strings.TrimSpace(text) == "" {
		r.fault(p.value, path, "the condition is empty", "write an expression, or remove the key")
		return
	}
	t.task.Condition = text
	t.source.condition = &scalarSource{at: r.at(p.value), style: p.value.Style, value: text}
}

func depPolicyWords() []string { return []string{"all", "any", "all_settled"} }

func (r *reader) readDepPolicy(p pair, t *taskTarget) {
	path := dag.At(t.index, dag.FieldDepPolicy)
	t.source.policy = r.at(p.value)
	if p.value.Kind == yaml.ScalarNode && p.value.ShortTag() != "!!str" {
		if n := r.integerOf(p, path, 1, r.limits.MaxTasks, "use "+strings.Join(depPolicyWords(), ", ")+", or the number of dependencies that must succeed"); n > 0 {
			t.task.DepPolicy = dag.DepPolicy{Kind: dag.AtLeast, N: n}
		}
		return
	}
	word, _ := r.wordOf(p, path, depPolicyWords())
	switch word {
	case "any":
		t.task.DepPolicy.Kind = dag.Any
	case "all_settled":
		t.task.DepPolicy.Kind = dag.AllSettled
	}
}

func (r *reader) readDependsOn(p pair, t *taskTarget) {
	path := dag.At(t.index, dag.FieldDependsOn)
	if p.value.Kind != yaml.SequenceNode {
		remedy := "write `depends_on: [a, b]`"
		if p.value.Kind == yaml.ScalarNode {
			remedy = "write `depends_on: [" + p.value.Value + "]`"
		}
		r.fault(p.value, path, "depends_on is a "+kindOf(p.value)+", not a list", remedy)
		return
	}
	r.dependencies += len(p.value.Content)
	if r.dependencies > r.limits.MaxDependencies {
		r.stop(p.key, fmt.Sprintf("the workflow has more than %d dependencies", r.limits.MaxDependencies), "put a task in between that gathers many others")
		return
	}
	t.task.DependsOn = make([]string, 0, len(p.value.Content))
	t.source.dependencies = make([]place, 0, len(p.value.Content))
	for _, element := range p.value.Content {
		n := r.resolve(element)
		if r.stopped {
			return
		}
		if name, ok := r.textOf(n, path, "an entry of depends_on"); ok {
			t.task.DependsOn = append(t.task.DependsOn, name)
			t.source.dependencies = append(t.source.dependencies, r.at(element))
		}
	}
}

func (r *reader) readKwargs(p pair, t *taskTarget) {
	path := dag.At(t.index, dag.FieldKwargs)
	if p.value.Kind != yaml.MappingNode {
		remedy := "write `kwargs: {cmd: ...}`"
		if p.value.Kind == yaml.ScalarNode {
			remedy = "a command is written as `kwargs: {cmd: ...}`"
		}
		r.fault(p.value, path, "kwargs is a "+kindOf(p.value)+", not a map", remedy)
		return
	}
	for _, entry := range r.pairs(p.value, path, "kwargs") {
		if r.stopped {
			return
		}
		if entry.key.Value == "cmd" {
			t.source.command = r.at(entry.value)
		}
		k := slices.IndexFunc(r.shellTable, func(k shellKey) bool { return k.name == entry.key.Value })
		var value []byte
		switch {
		case k < 0:
			r.checkUnused(entry, t)
			value = r.appendJSON(nil, entry.value, path, 1)
		case r.shellTable[k].values:
			value = r.envOf(entry.value, path)
		default:
			value = r.shellText(entry, path)
		}
		if value != nil {
			t.task.Kwargs = append(t.task.Kwargs, dag.Kwarg{Key: entry.key.Value, Value: value})
			t.source.kwargs = append(t.source.kwargs, r.at(entry.key))
		}
	}
}

// checkUnused warns of a key of kwargs that looks as if it were meant to do
// something: no other key of kwargs is of any effect on a command.
func (r *reader) checkUnused(entry pair, t *taskTarget) {
	word := entry.key.Value
	meant, best := otherShellKey(word), 4
	for _, k := range r.shellTable {
		if d, near := dag.Near(word, k.name); near && d < best {
			meant, best = k.name, d
		}
	}
	k := slices.IndexFunc(r.shellTable, func(k shellKey) bool { return k.name == meant })
	// A key whose value could not be meant so is a slip of nothing.
	if k < 0 || r.options.AllowMissingCommand || r.shellTable[k].values != (entry.value.Kind == yaml.MappingNode) {
		return
	}
	at := r.at(entry.key)
	r.report(Diagnostic{
		Severity: Warning, Line: int(at.line), Column: int(at.column), Task: t.task.Name, Path: dag.At(t.index, dag.FieldKwargs).String() + "." + word,
		Message: "the key " + dag.Quote(word) + " of kwargs has no effect", Remedy: "did you mean " + dag.Quote(meant) + "?",
	})
}

// otherShellKey returns the key of kwargs for a word of other systems, or "".
func otherShellKey(word string) string {
	switch strings.ToLower(word) {
	case "environment", "environ":
		return "env"
	case "workdir", "working_dir", "working_directory", "working-directory":
		return "cwd"
	}
	return ""
}

// shellText returns the text of cmd, cwd or bg_dirsync_to as JSON, or nil.
func (r *reader) shellText(entry pair, path dag.Path) []byte {
	text, ok := r.textOf(entry.value, path, entry.key.Value)
	switch {
	case !ok:
		return nil
	case strings.TrimSpace(text) == "":
		remedy := "give it a text, or remove the key"
		if entry.key.Value == "cmd" {
			remedy = "give it a text; a command that does nothing is `cmd: \"true\"`"
		}
		r.fault(entry.value, path, entry.key.Value+" is empty", remedy)
		return nil
	case strings.ContainsRune(text, 0):
		r.fault(entry.value, path, entry.key.Value+" contains the character U+0000, which no command line can hold", "remove it")
		return nil
	}
	return appendText(nil, text)
}

// envOf returns the map of env as JSON, or nil.
func (r *reader) envOf(n *yaml.Node, path dag.Path) []byte {
	if n.Kind != yaml.MappingNode {
		r.fault(n, path, "env is a "+kindOf(n)+", not a map", "write `env: {NAME: value}`")
		return nil
	}
	b := []byte{'{'}
	for _, entry := range r.pairs(n, path, "env") {
		name := entry.key.Value
		if strings.ContainsAny(name, "=\x00") {
			r.fault(entry.key, path, "the variable name "+dag.Quote(name)+" contains = or U+0000", "name the variable otherwise")
			continue
		}
		text, ok := r.textOf(entry.value, path, "the variable "+name)
		if !ok {
			continue
		}
		if strings.ContainsRune(text, 0) {
			r.fault(entry.value, path, "the variable "+name+" contains the character U+0000, which no environment can hold", "remove it")
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendText(b, text)
	}
	return append(b, '}')
}
