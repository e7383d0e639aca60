package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/worker/protocol"
	"jobq/worker/taskapi"
)

const (
	// maxOutput is the largest output that is read at all.
	maxOutput = 64 << 20
	// maxFileName is the longest file name that an output of a parent gets.
	maxFileName = 200
)

// scratch is the directory of a worker. Safe for concurrent use.
type scratch struct {
	dir string
	// bin holds the helper for the PATH of children.
	bin string
	// outputs is where the output files of all starts are. A start without
	// output and without parents costs no file and no directory.
	outputs string
	// noRefs and noUpstream are what tasks without parents get.
	noRefs, noUpstream string
	starts             atomic.Uint64
}

// newScratch makes the directory of a worker below base.
func newScratch(base, executable string) (*scratch, error) {
	dir, err := os.MkdirTemp(base, "jobq-")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the worker has no scratch directory")
	}
	s := &scratch{
		dir: dir, bin: filepath.Join(dir, "bin"), outputs: filepath.Join(dir, "outputs"),
		noUpstream: filepath.Join(dir, "none"), noRefs: filepath.Join(dir, "none", taskapi.RefsFile),
	}
	if err := s.fill(executable); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "the scratch directory of the worker cannot be filled"), s.remove())
	}
	return s, nil
}

func (s *scratch) fill(executable string) error {
	program, err := filepath.Abs(executable)
	if err != nil {
		return err
	}
	for _, dir := range []string{s.bin, s.outputs, s.noUpstream} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink(program, filepath.Join(s.bin, "jobq")); err != nil {
		return err
	}
	for _, name := range []string{taskapi.RefsFile, taskapi.IndexFile} {
		if err := os.WriteFile(filepath.Join(s.noUpstream, name), []byte("{}"), 0o444); err != nil {
			return err
		}
	}
	// Tasks share it, so none may leave something there for another.
	return os.Chmod(s.noUpstream, 0o555)
}

func (s *scratch) remove() error {
	os.Chmod(s.noUpstream, 0o755) // RemoveAll says it where this was not enough
	if err := os.RemoveAll(s.dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the scratch directory of the worker cannot be removed")
	}
	return nil
}

// errDisk marks what this machine could not do. Another machine may.
var errDisk = errors.New("the disk of the worker failed")

func diskFault(err error, text string) error {
	return fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %w", errDisk, err), text)
}

// startFiles are the files of one start. Its names are never used again: what a
// process that outlived another start still writes goes nowhere.
type startFiles struct {
	outputPath, upstreamDir, refsPath string
	// inputs is the directory of upstreamDir and refsPath where they are not the
	// shared empty ones, else empty.
	inputs string
}

// prepare names the files of a start and writes the outputs of its parents.
func (s *scratch) prepare(ctx context.Context, start protocol.Start) (*startFiles, error) {
	number := strconv.FormatUint(s.starts.Add(1), 10)
	f := &startFiles{
		outputPath: filepath.Join(s.outputs, number+".json"), upstreamDir: s.noUpstream, refsPath: s.noRefs,
	}
	if start.Task.Upstream == nil {
		return f, nil
	}
	f.inputs = filepath.Join(s.dir, number)
	if err := f.writeUpstream(ctx, start); err != nil {
		return nil, errors.Join(err, os.RemoveAll(f.inputs))
	}
	return f, nil
}

// writeUpstream writes one file for each parent that has an output, and the two
// maps: from parent to file, and from parent to reference as ai4s-jobq has it.
func (f *startFiles) writeUpstream(ctx context.Context, start protocol.Start) error {
	f.upstreamDir, f.refsPath = filepath.Join(f.inputs, "upstream"), filepath.Join(f.inputs, taskapi.RefsFile)
	if err := os.MkdirAll(f.upstreamDir, 0o700); err != nil {
		return diskFault(err, "the start has no directory for its inputs")
	}
	files, refs := map[string]*string{}, map[string]*string{}
	for parent, ref := range start.Task.Upstream.All(start.Task.Workflow) {
		if ref == "" {
			files[parent], refs[parent] = nil, nil
			continue
		}
		body, err := start.Fetch(ctx, ref)
		if err != nil {
			return fault.Wrapf(fault.CodeOf(err), err, "output of %q", parent)
		}
		name := upstreamFile(parent)
		if err := writeFile(filepath.Join(f.upstreamDir, name), body); err != nil {
			return err
		}
		files[parent], refs[parent] = &name, &ref
	}
	if err := writeJSON(filepath.Join(f.upstreamDir, taskapi.IndexFile), files); err != nil {
		return err
	}
	return writeJSON(f.refsPath, refs)
}

// upstreamFile names the file of a parent: NAME.json where the name is a plain
// one, escaped or shortened where it is not. Different parents get different
// files; the index file says which.
func upstreamFile(parent string) string {
	name := msg.Escape(parent)
	if len(name) > maxFileName {
		sum := sha256.Sum256([]byte(parent))
		name = name[:maxFileName-65] + "~" + hex.EncodeToString(sum[:])
	}
	if name+".json" == taskapi.IndexFile {
		name = "~" + name // Escape never writes this
	}
	return name + ".json"
}

func writeJSON(path string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the inputs of the start cannot be written as JSON")
	}
	return writeFile(path, body)
}

func writeFile(path string, body []byte) error {
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return diskFault(err, "the inputs of the start cannot be written")
	}
	return nil
}

// output reads what the command left in its output file: nil for nothing, one
// JSON document, or an error that says what is wrong with it.
func (f *startFiles) output() ([]byte, error) {
	info, err := os.Stat(f.outputPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault.Wrap(fault.Invalid, err, "$JOBQ_OUTPUT_FILE cannot be read")
	case !info.Mode().IsRegular():
		return nil, fault.Newf(fault.Invalid, "$JOBQ_OUTPUT_FILE is a %s; it must be a file with one JSON document", kindOf(info.Mode()))
	case info.Size() > maxOutput:
		return nil, fault.Newf(fault.Invalid, "$JOBQ_OUTPUT_FILE has %d bytes; an output may have %d", info.Size(), maxOutput)
	}
	file, err := os.Open(f.outputPath)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "$JOBQ_OUTPUT_FILE cannot be read")
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxOutput+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "$JOBQ_OUTPUT_FILE cannot be read")
	}
	if len(body) > maxOutput {
		return nil, fault.Newf(fault.Invalid, "$JOBQ_OUTPUT_FILE grew beyond the %d bytes that an output may have", maxOutput)
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, nil
	}
	if err := taskapi.CheckDocument(body); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "$JOBQ_OUTPUT_FILE")
	}
	return body, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}

// remove removes the files of the start.
func (f *startFiles) remove(logger *slog.Logger) {
	err := os.RemoveAll(f.outputPath)
	if f.inputs != "" {
		err = errors.Join(err, os.RemoveAll(f.inputs))
	}
	if err != nil {
		logger.Warn("files of a start could not be removed", "error", err)
	}
}
