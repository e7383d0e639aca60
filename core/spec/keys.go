package spec

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

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
		remedy = "did you mean " + dag.Quote(best) + "?"
		// That the right key is missing only follows.
		r.faulted[dag.Path{Task: path.Task, Field: dag.Field(best), Element: -1}] = true
	case strings.HasPrefix(foreign, "`") && path.Task >= 0:
		remedy = "write " + foreign
		r.faulted[dag.At(path.Task, dag.FieldKwargs)] = true
	case slices.Contains(known, foreign):
		remedy = "did you mean " + dag.Quote(foreign) + "?"
	}
	r.fault(key, path, what+" has no key "+dag.Quote(key.Value), remedy)
}
