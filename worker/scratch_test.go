package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/worker/protocol"
	"jobq/worker/taskapi"
)

func TestWhatIsMissingInTheScratchDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	s, err := newScratch(base, "jobq")
	if err != nil {
		t.Fatal(err)
	}
	siblings := protocol.Start{Task: msg.Task{Workflow: "w", Statuses: map[string][]string{"failed": {"a"}}}}
	for _, gone := range []string{s.dir, s.outputs, s.bin, s.noUpstream, base} {
		if _, err := s.prepare(t.Context(), siblings); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		for _, start := range []protocol.Start{{Task: msg.Task{Workflow: "w"}}, siblings} {
			f, err := s.prepare(t.Context(), start)
			if err != nil {
				t.Fatalf("prepare without %s = %v", gone, err)
			}
			for _, path := range []string{filepath.Dir(f.outputPath), f.upstreamDir, f.refsPath, s.helper()} {
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("without %s: %v", gone, err)
				}
			}
		}
	}
}

// A PATH ends an entry at a colon.
func TestTheHelperIsFoundWhateverTheNameOfTheScratchDirectory(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "12:30")
	s, err := newScratch(base, "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(s.bin, os.PathListSeparator) {
		t.Errorf("the helper lies in %s", s.bin)
	}
	if _, err := os.Stat(s.helper()); err != nil {
		t.Errorf("the helper is not there: %v", err)
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{s.dir, s.bin} {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

func TestDirectoriesThatATaskMadeReadOnlyAreRemoved(t *testing.T) {
	t.Parallel()
	s, err := newScratch(t.TempDir(), "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(s.outputs, "not\xfftext")
	if err := os.MkdirAll(filepath.Join(inner, "deep"), 0o700); err != nil {
		t.Skip(err) // some file systems take text alone
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(inner, "link")); err != nil {
		t.Fatal(err)
	}
	for dir, mode := range map[string]os.FileMode{inner: 0o100, elsewhere: 0o500} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(elsewhere); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link leads to is now %v, %v", info, err)
	}
}

func TestAShortMachineIsNoFaultOfTheOutput(t *testing.T) {
	t.Parallel()
	for cause, short := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOMEM: true, syscall.EIO: true,
		syscall.EACCES: false, syscall.ELOOP: false, syscall.ENXIO: false,
	} {
		err := unreadable(&os.PathError{Op: "open", Path: "out.json", Err: cause})
		if errors.Is(err, errDisk) != short || fault.Is(err, fault.Invalid) == short {
			t.Errorf("unreadable(%v) = %v, want the machine at fault: %t", cause, err, short)
		}
	}
}

// A task with thousands of parents does not wait for their outputs one by one.
func TestOutputsOfParentsAreFetchedSideBySide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newScratch(dir, "jobq")
		if err != nil {
			t.Fatal(err)
		}
		const n = 80
		refs := &msg.Refs{}
		for i := range n {
			refs.Add("w", strconv.Itoa(i), msg.FormatBlobRef(msg.CanonicalOutput("w", strconv.Itoa(i)), ""))
		}
		fetch := func(_ context.Context, ref string) ([]byte, error) {
			time.Sleep(time.Second)
			return []byte(strconv.Quote(ref)), nil
		}
		begun := time.Now()
		files, err := s.prepare(t.Context(), protocol.Start{Task: msg.Task{Workflow: "w", Name: "t", Upstream: refs}, Fetch: fetch})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > n*time.Second/5 {
			t.Errorf("the outputs of %d parents took %v at a second each", n, took)
		}
		for i := range n {
			if body, err := os.ReadFile(filepath.Join(files.upstreamDir, strconv.Itoa(i)+".json")); err != nil || string(body) != fmt.Sprintf(`"blob:w/%d.json"`, i) {
				t.Errorf("output of %d = %s, %v", i, body, err)
			}
		}
		missing := func(context.Context, string) ([]byte, error) { return nil, fault.New(fault.Corrupt, "gone") }
		if _, err := s.prepare(t.Context(), protocol.Start{Task: msg.Task{Workflow: "w", Name: "t", Upstream: refs}, Fetch: missing}); !fault.Is(err, fault.Corrupt) {
			t.Errorf("prepare with outputs that are gone = %v, want corrupt", err)
		}
	})
}

// Where the file system takes capitals for small letters, as that of macOS does,
// parents whose names differ in nothing else have files of their own all the same.
func TestParentsThatDifferInCapitalsHaveFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, folds := range []bool{false, true} {
		f := &startFiles{folds: folds}
		taken, seen := map[string]bool{}, map[string]string{}
		for _, parent := range []string{"TRAIN", "Train", "train", "INDEX", "index", strings.Repeat("x", 300), strings.Repeat("X", 300)} {
			name := f.upstreamFile(parent, taken)
			key := name
			if folds {
				key = strings.ToLower(name)
			}
			if other, ok := seen[key]; ok || strings.EqualFold(name, taskapi.IndexFile) && (folds || name == taskapi.IndexFile) {
				t.Errorf("folds %t: %q and %q have the file %s", folds, parent, other, name)
			}
			seen[key] = parent
			if !folds && parent == "train" && name != "train.json" {
				t.Errorf("file of train = %s", name)
			}
		}
	}
}
