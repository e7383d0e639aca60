package worker

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"jobq/core/fault"
	"jobq/worker/taskapi"
)

const (
	// maxOutput is the largest output that is read at all.
	maxOutput = 64 << 20
)

// scratch is the directory of a worker. Safe for concurrent use.
type scratch struct {
	dir string
	// bin holds the helper for the PATH of children. It lies outside dir where no entry
	// of a PATH can name that.
	bin string
	// outputs is where the output files of all starts are. A start without
	// output and without parents costs no file and no directory.
	outputs string
	// noUpstream is what tasks without parents get.
	noUpstream string
	// folds says that the file system takes a name in capitals for the same.
	folds  bool
	shared sharedInputs
	starts atomic.Uint64
	// program is what bin leads to; mending lets one start at a time make what is
	// missing.
	program string
	mending sync.Mutex
}

// newScratch makes the directory of a worker below base.
func newScratch(base, executable string) (*scratch, error) {
	remedy := "set TMPDIR to a directory that can be written to"
	var dir string
	var err error
	if base != "" {
		remedy = "see that " + base + " can be made and written to"
		err = os.MkdirAll(base, 0o700)
	}
	if err == nil {
		dir, err = os.MkdirTemp(base, "jobq-")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the worker has no scratch directory").WithRemedy(remedy)
	}
	s := &scratch{
		dir: dir, outputs: filepath.Join(dir, "outputs"), noUpstream: filepath.Join(dir, "none"),
	}
	if s.bin, err = binOf(dir); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if s.program, err = filepath.Abs(executable); err == nil {
		err = s.fill()
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "the scratch directory of the worker cannot be filled"), s.remove())
	}
	_, err = os.Lstat(filepath.Join(dir, "OUTPUTS"))
	s.folds = err == nil
	return s, nil
}

// binOf returns the directory of the helper of the scratch directory dir: in there, or
// in the system's directory for temporary files where dir has the character in its name
// that stands between the entries of a PATH.
func binOf(dir string) (string, error) {
	if !strings.ContainsRune(dir, os.PathListSeparator) {
		return filepath.Join(dir, "bin"), nil
	}
	bin, err := os.MkdirTemp("", "jobq-bin-")
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the worker has no directory for the helper of tasks").
			WithRemedy("set TMPDIR to a directory that can be written to")
	}
	if !strings.ContainsRune(bin, os.PathListSeparator) {
		return bin, nil
	}
	return bin, fault.Newf(fault.Invalid, "neither %s nor %s can be part of a PATH: there is a %q in its name", dir, bin, os.PathListSeparator).
		WithRemedy("set TMPDIR to a directory without it")
}

// fill makes what every start needs and is not there.
func (s *scratch) fill() error {
	for _, dir := range []string{s.bin, s.outputs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return diskFault(err, "a directory cannot be made")
		}
	}
	if err := os.Symlink(s.program, s.helper()); err != nil && !errors.Is(err, fs.ErrExist) {
		return diskFault(err, "the helper of tasks cannot be linked")
	}
	return writeMaps(s.noUpstream, []byte("{}"), []byte("{}"), []byte("{}"))
}

func (s *scratch) helper() string { return filepath.Join(s.bin, "jobq") }

// mend makes again what is missing: a task, or a cleaner of old files in a
// directory such as /tmp, may have removed it.
func (s *scratch) mend() error {
	s.mending.Lock()
	defer s.mending.Unlock()
	needed := []string{
		s.helper(), s.outputs, filepath.Join(s.noUpstream, taskapi.IndexFile),
		filepath.Join(s.noUpstream, taskapi.RefsFile), filepath.Join(s.noUpstream, taskapi.StatusFile),
	}
	for _, path := range needed {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			s.shared.forget()
			return s.fill()
		}
	}
	return nil
}

func (s *scratch) remove() error {
	if err := errors.Join(removeAll(s.dir), removeAll(s.bin)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the scratch directory of the worker cannot be removed")
	}
	return nil
}

// removeAll removes everything below path, directories too that a task made
// read-only.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	root, opened := os.OpenRoot(filepath.Dir(path))
	if opened != nil {
		return err
	}
	defer root.Close()
	unlock(root, filepath.Base(path))
	return root.RemoveAll(filepath.Base(path))
}

// unlock gives this user all rights on the directories from name on, as far as that is
// possible.
func unlock(root *os.Root, name string) {
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return
	}
	_ = root.Chmod(name, 0o700)
	dir, err := root.Open(name)
	if err != nil {
		return
	}
	entries, _ := dir.ReadDir(-1)
	_ = dir.Close()
	for _, entry := range entries {
		if entry.IsDir() {
			unlock(root, filepath.Join(name, entry.Name()))
		}
	}
}

// startFiles are the files of one start. Their names are never used again: what
// a process that outlived another start still writes goes nowhere.
type startFiles struct {
	outputPath, upstreamDir, refsPath string
	// inputs is upstreamDir where it belongs to this start alone, else empty.
	inputs string
	// folds says that the file system takes a name in capitals for the same.
	folds bool
}

// output reads what the command left in its output file: nil for nothing, one
// JSON document, or an error that says what is wrong with it.
func (f *startFiles) output() ([]byte, error) {
	// Without waiting: what stands under the name may be a pipe that nobody writes to.
	file, err := os.OpenFile(f.outputPath, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !info.Mode().IsRegular():
		return nil, fault.Newf(fault.Invalid, "$JOBQ_OUTPUT_FILE is a %s; it must be a file with one JSON document", kindOf(info.Mode()))
	case info.Size() > maxOutput:
		return nil, fault.Newf(fault.Invalid, "$JOBQ_OUTPUT_FILE has %d bytes; an output may have %d", info.Size(), maxOutput)
	}
	body, err := io.ReadAll(io.LimitReader(file, maxOutput+1))
	if err != nil {
		return nil, unreadable(err)
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

// unreadable tells what is wrong with a file from a machine that has nothing to
// spare to read it with.
func unreadable(err error) error {
	const text = "$JOBQ_OUTPUT_FILE cannot be read"
	for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		if errors.Is(err, short) {
			return diskFault(err, text)
		}
	}
	return fault.Wrap(fault.Invalid, err, text)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	default:
		return "device"
	}
}

// remove removes the files of the start.
func (f *startFiles) remove(logger *slog.Logger) {
	err := removeAll(f.outputPath)
	if f.inputs != "" {
		err = errors.Join(err, removeAll(f.inputs))
	}
	if err != nil {
		logger.Warn("files of a start could not be removed", "error", err)
	}
}
