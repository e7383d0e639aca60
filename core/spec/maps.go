package spec

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

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
