package taskapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jobq/core/fault"
)

// Completed is the status of a parent that succeeded.
const Completed = "completed"

// Parents returns the names of the parents of the task in ascending order, those
// without output and those that failed included.
func (t *Task) Parents() ([]string, error) {
	index, statuses, err := t.parents()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(statuses)
	for parent := range index {
		all[parent] = ""
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// Status returns the status that parent had when the task was sent: completed,
// skipped, failed, upstream_failed, cancelled, or that of one which had not ended.
// Fails with fault.NotFound for a task that is no parent.
func (t *Task) Status(parent string) (string, error) {
	index, statuses, err := t.parents()
	if err != nil {
		return "", err
	}
	if status, known := statuses[parent]; known {
		return status, nil
	}
	if _, known := index[parent]; known {
		return Completed, nil
	}
	return "", notAParent(parent, index, statuses)
}

// parents returns the files and the statuses of the parents. A worker of
// ai4s-jobq writes no statuses.
func (t *Task) parents() (index map[string]*string, statuses map[string]string, err error) {
	if index, err = t.index(); err != nil {
		return nil, nil, err
	}
	statuses = map[string]string{}
	body, err := os.ReadFile(filepath.Join(t.upstreamDir, StatusFile))
	if errors.Is(err, fs.ErrNotExist) {
		return index, statuses, nil
	}
	if err == nil {
		err = json.Unmarshal(body, &statuses)
	}
	if err != nil {
		return nil, nil, fault.Wrap(fault.Corrupt, err, "the statuses of the parents cannot be read")
	}
	return index, statuses, nil
}

func (t *Task) index() (map[string]*string, error) {
	if t.upstreamDir == "" {
		return nil, fault.New(fault.Invalid, "JOBQ_UPSTREAM_DIR is not set, so there are no outputs of parents")
	}
	body, err := os.ReadFile(filepath.Join(t.upstreamDir, IndexFile))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the outputs of the parents cannot be read")
	}
	var index map[string]*string
	if err := json.Unmarshal(body, &index); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "the list of the parents cannot be read")
	}
	return index, nil
}

// Upstream returns the output of parent, or the part of it that path names: keys
// and positions with dots between them, such as metrics.mae or items.0. Of a
// parent without output, or one that failed, it returns null, whatever the path.
// Fails with fault.NotFound for a task that is no parent and for a path that leads
// nowhere.
func (t *Task) Upstream(parent, path string) (json.RawMessage, error) {
	index, statuses, err := t.parents()
	if err != nil {
		return nil, err
	}
	file, known := index[parent]
	if _, settled := statuses[parent]; !known && !settled {
		return nil, notAParent(parent, index, statuses)
	}
	if file == nil {
		return json.RawMessage("null"), nil
	}
	body, err := os.ReadFile(filepath.Join(t.upstreamDir, filepath.Base(*file)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrapf(fault.NotFound, err, "the output of %q was removed", parent)
	}
	if err != nil {
		return nil, fault.Wrapf(fault.Unavailable, err, "the output of %q cannot be read", parent)
	}
	if path == "" {
		return json.RawMessage(bytes.TrimSpace(body)), nil
	}
	part, err := follow(body, strings.Split(path, "."))
	if err != nil {
		return nil, fault.Wrapf(fault.CodeOf(err), err, "output of %q", parent).
			WithRemedy("`jobq upstream get` without a path prints the whole output")
	}
	return part, nil
}

func notAParent(name string, index map[string]*string, statuses map[string]string) error {
	const remedy = "add it to depends_on, or name one of the parents"
	all := maps.Clone(statuses)
	for parent := range index {
		all[parent] = ""
	}
	if len(all) == 0 {
		return fault.Newf(fault.NotFound, "%q is not a parent of this task, which has none", name).WithRemedy(remedy)
	}
	parents := slices.Sorted(maps.Keys(all))
	if len(parents) > 20 {
		parents = append(parents[:20], "...")
	}
	return fault.Newf(fault.NotFound, "%q is not a parent of this task; its parents are %s", name, strings.Join(parents, ", ")).
		WithRemedy(remedy)
}

// follow walks down from body. The parts stay the text that they were.
func follow(body json.RawMessage, path []string) (json.RawMessage, error) {
	for i, step := range path {
		where := strings.Join(path[:i+1], ".")
		switch trimmed := bytes.TrimSpace(body); {
		case len(trimmed) > 0 && trimmed[0] == '{':
			var members map[string]json.RawMessage
			if err := json.Unmarshal(trimmed, &members); err != nil {
				return nil, fault.Wrap(fault.Corrupt, err, "it is not JSON")
			}
			next, found := members[step]
			if !found {
				return nil, fault.Newf(fault.NotFound, "it has no %s; there is %s", where, strings.Join(slices.Sorted(maps.Keys(members)), ", "))
			}
			body = next
		case len(trimmed) > 0 && trimmed[0] == '[':
			var items []json.RawMessage
			if err := json.Unmarshal(trimmed, &items); err != nil {
				return nil, fault.Wrap(fault.Corrupt, err, "it is not JSON")
			}
			at, err := strconv.Atoi(step)
			if err != nil || at < 0 || at >= len(items) {
				return nil, fault.Newf(fault.NotFound, "it has no %s; the list has %d items, the first is 0", where, len(items))
			}
			body = items[at]
		default:
			return nil, fault.Newf(fault.NotFound, "it has no %s; what comes before is no object and no list", where)
		}
	}
	return json.RawMessage(bytes.TrimSpace(body)), nil
}

// Text returns value as a shell wants it: a string without quotes, anything else
// as the JSON that it is.
func Text(value json.RawMessage) string {
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
