package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/sched"
	"jobq/worker/protocol"
	"jobq/worker/taskapi"
)

const (
	// maxFileName is the longest file name that an output of a parent gets.
	maxFileName = 200
	// maxShared is how many directories a worker keeps for tasks whose parents
	// left nothing: siblings have the same, and need not write it again.
	maxShared = 64
	// fetchers is how many outputs of parents are fetched at a time.
	fetchers = 8
)

// errDisk marks what this machine could not do. Another machine may.
var errDisk = errors.New("the disk of the worker failed")

func diskFault(err error, text string) error {
	return fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %w", errDisk, err), text)
}

// sharedInputs are the directories of tasks whose parents left no output, by
// the content of their index. Safe for concurrent use.
type sharedInputs struct {
	mu   sync.Mutex
	dirs map[string]string
}

// get returns the directory for index, making it with write where there is
// none yet, or empty where no more are kept.
func (s *sharedInputs) get(index []byte, name func() string, write func(dir string) error) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, known := s.dirs[string(index)]; known || len(s.dirs) >= maxShared {
		return dir, nil
	}
	dir := name()
	if err := write(dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	if s.dirs == nil {
		s.dirs = make(map[string]string)
	}
	s.dirs[string(index)] = dir
	return dir, nil
}

// forget drops the directories that are known: they may be gone.
func (s *sharedInputs) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.dirs)
}

// prepare names the files of a start and writes the outputs of its parents.
func (s *scratch) prepare(ctx context.Context, start protocol.Start) (*startFiles, error) {
	if err := s.mend(); err != nil {
		return nil, err
	}
	dir, err := s.sharedDir(&start.Task)
	if err != nil {
		return nil, err
	}
	f := &startFiles{outputPath: filepath.Join(s.outputs, s.number()+".json"), upstreamDir: dir, folds: s.folds}
	if dir == "" {
		f.inputs = filepath.Join(s.dir, s.number())
		f.upstreamDir = f.inputs
		if err := f.writeUpstream(ctx, start); err != nil {
			return nil, errors.Join(err, os.RemoveAll(f.inputs))
		}
	}
	f.refsPath = filepath.Join(f.upstreamDir, taskapi.RefsFile)
	return f, nil
}

func (s *scratch) number() string { return strconv.FormatUint(s.starts.Add(1), 10) }

// sharedDir returns the directory for a task without parents, or with parents
// that left nothing, or empty where the task needs one of its own.
func (s *scratch) sharedDir(task *msg.Task) (string, error) {
	refs := task.Upstream
	if refs == nil && len(task.Statuses) == 0 {
		return s.noUpstream, nil
	}
	if refs != nil && len(refs.Canonical)+len(refs.Literal) > 0 {
		return "", nil
	}
	index := map[string]*string{}
	if refs != nil {
		for _, parent := range refs.None {
			index[parent] = nil
		}
	}
	body, err := json.Marshal(index)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the names of the parents cannot be written as JSON")
	}
	statuses, err := statusesOf(task)
	if err != nil {
		return "", err
	}
	name := func() string { return filepath.Join(s.dir, s.number()) }
	return s.shared.get(slices.Concat(body, statuses), name, func(dir string) error { return writeMaps(dir, body, body, statuses) })
}

// statusesOf returns the JSON map from parent to status: who is in the message
// with an output, or without one and no status, had completed.
func statusesOf(task *msg.Task) ([]byte, error) {
	all := map[string]string{}
	if task.Upstream != nil {
		for parent := range task.Upstream.All(task.Workflow) {
			all[parent] = taskapi.Completed
		}
	}
	for word, parents := range task.Statuses {
		for _, parent := range parents {
			all[parent] = word
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the statuses of the parents cannot be written as JSON")
	}
	return body, nil
}

// writeMaps makes dir with the maps that every start has.
func writeMaps(dir string, index, refs, statuses []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return diskFault(err, "the start has no directory for its inputs")
	}
	return errors.Join(
		writeFile(filepath.Join(dir, taskapi.IndexFile), index),
		writeFile(filepath.Join(dir, taskapi.RefsFile), refs),
		writeFile(filepath.Join(dir, taskapi.StatusFile), statuses))
}

// writeUpstream writes one file for each parent that has an output, and the
// maps from parent to file, to reference as ai4s-jobq has it, and to status.
func (f *startFiles) writeUpstream(ctx context.Context, start protocol.Start) error {
	files, refs := map[string]*string{}, map[string]*string{}
	taken := map[string]bool{}
	for parent, ref := range start.Task.Upstream.All(start.Task.Workflow) {
		files[parent], refs[parent] = nil, nil
		if ref != "" {
			files[parent], refs[parent] = new(f.upstreamFile(parent, taken)), &ref
		}
	}
	index, err := json.Marshal(files)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the names of the parents cannot be written as JSON")
	}
	flat, err := json.Marshal(refs)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the references of the parents cannot be written as JSON")
	}
	statuses, err := statusesOf(&start.Task)
	if err != nil {
		return err
	}
	if err := writeMaps(f.inputs, index, flat, statuses); err != nil {
		return err
	}
	return f.fetchUpstream(ctx, start, files, refs)
}

// fetchUpstream writes the outputs that refs points to into files, both by parent.
func (f *startFiles) fetchUpstream(ctx context.Context, start protocol.Start, files, refs map[string]*string) error {
	var parents []string
	for _, parent := range slices.Sorted(maps.Keys(refs)) {
		if refs[parent] != nil {
			parents = append(parents, parent)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sched.Real{}.Parallel(ctx, len(parents), fetchers, func(ctx context.Context, i int) {
		if ctx.Err() != nil {
			return
		}
		body, err := start.Fetch(ctx, *refs[parents[i]])
		if err != nil {
			err = fault.Wrapf(fault.CodeOf(err), err, "output of %q", parents[i])
		} else {
			err = writeFile(filepath.Join(f.inputs, *files[parents[i]]), bytes.TrimSpace(body))
		}
		if err != nil {
			stop(err) // the first counts
		}
	})
	if ctx.Err() == nil {
		return nil
	}
	err := context.Cause(ctx)
	if _, ok := errors.AsType[*fault.Error](err); !ok {
		err = fault.Wrap(fault.Canceled, err, "the outputs were not fetched")
	}
	return err
}

// upstreamFile names the file of a parent: NAME.json where the name is a plain
// one, escaped or shortened where it is not, or where the file system takes it for
// one that is in taken, to which it is added. Different parents get different
// files; the index file says which.
func (f *startFiles) upstreamFile(parent string, taken map[string]bool) string {
	name := msg.Escape(parent)
	folded := strings.ToLower(name)
	if len(name) > maxFileName || f.folds && taken[folded] {
		sum := sha256.Sum256([]byte(parent))
		name = name[:min(len(name), maxFileName-65)] + "~" + hex.EncodeToString(sum[:])
	}
	taken[folded] = true
	if file := name + ".json"; file == taskapi.IndexFile || f.folds && strings.EqualFold(file, taskapi.IndexFile) {
		name = "~" + name // Escape never writes this
	}
	return name + ".json"
}

func writeFile(path string, body []byte) error {
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return diskFault(err, "the inputs of the start cannot be written")
	}
	return nil
}
