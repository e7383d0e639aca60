package state_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jobq/core/fault"
	"jobq/core/state"
)

var update = flag.Bool("update", false, "write golden files that are missing, and docs/states.md")

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkflow(t)
		b, err := state.Encode(w)
		if err != nil {
			t.Fatalf("Encode: %v", err)
		}
		got, err := state.Decode(b)
		if err != nil {
			t.Fatalf("Decode: %v", err)
		}
		if diff := cmp.Diff(w, got, exported); diff != "" {
			t.Fatalf("a round trip changes the state (-before +after):\n%s", diff)
		}
		again, err := state.Encode(got)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("the same state has other bytes the second time (%v)", err)
		}
	})
}

func TestEqualStatesHaveEqualBytes(t *testing.T) {
	t.Parallel()
	a, b := everything(), everything()
	// The same entries, put in the other way round.
	b.Exits = map[int32]state.Exit{}
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(a.Exits))) {
		b.Exits[k] = a.Exits[k]
	}
	b.GiveBacks, b.Frozen = maps.Clone(a.GiveBacks), maps.Clone(a.Frozen)
	first := encode(t, a)
	for range 20 {
		if !bytes.Equal(first, encode(t, b)) {
			t.Fatal("two equal states have different bytes")
		}
	}
}

// TestGoldenFiles reads every state that some release of jobq may have written.
// The files are only ever added to: -update writes those that are missing.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	if *update {
		writeMissing(t, "v1-everything", everything())
		writeMissing(t, "v1-begun", state.New("w1", 3))
		writeMissing(t, "v1-tombstone", everything().Tombstone())
	}
	files, err := filepath.Glob("testdata/*.bin")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d golden files (%v), want 3 or more", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			stored := read(t, file)
			w := decode(t, stored)
			want := string(read(t, strings.TrimSuffix(file, ".bin")+".txt"))
			if diff := cmp.Diff(want, dump(w)); diff != "" {
				t.Errorf("the stored state reads differently (-golden +now):\n%s", diff)
			}
			if strings.HasPrefix(filepath.Base(file), "v1-") && state.Format == 1 && !bytes.Equal(stored, encode(t, w)) {
				t.Error("the same state is written differently now, under the same format number")
			}
		})
	}
}

func writeMissing(t *testing.T, name string, w *state.Workflow) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if _, err := os.Stat(path + ".bin"); err == nil {
		return
	}
	for ext, body := range map[string][]byte{".bin": encode(t, w), ".txt": []byte(dump(w))} {
		if err := os.WriteFile(path+ext, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNewerFormats(t *testing.T) {
	t.Parallel()
	header := section{1, `{"id":"w","version":1,"status":"pending","tasks":1}`}
	columns := []section{header, {2, "p"}, {3, "\x00"}, {5, "\x00"}, {6, "\x00"}}
	for name, tc := range map[string]struct {
		format, reader, writer uint64
		sections               []section
		want                   fault.Code
		ok                     bool
	}{
		"ours":                                   {1, 1, 1, columns, 0, true},
		"newer, but readable and writable":       {9, 1, 1, columns, 0, true},
		"not readable by us":                     {9, 2, 1, columns, fault.TooNew, false},
		"not writable by us":                     {9, 1, 2, columns, fault.TooNew, false},
		"not readable, whatever follows":         {9, 9, 9, []section{{77, "?"}}, fault.TooNew, false},
		"without the columns that may be sparse": {1, 1, 1, columns, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := state.Decode(document(tc.format, tc.reader, tc.writer, tc.sections...))
			if (err == nil) != tc.ok || err != nil && fault.CodeOf(err) != tc.want {
				t.Errorf("Decode: %v, want ok %t, code %s", err, tc.ok, tc.want)
			}
		})
	}
}

func TestUnknownSectionsSurvive(t *testing.T) {
	t.Parallel()
	b := encode(t, everything())
	b = append(b[:len(b)-4], 200, 1, 5, 'n', 'e', 'w', 'e', 'r', 99, 0)
	w := decode(t, checksummed(b))
	w.TaskStatus[0] = state.Skipped
	saved := encode(t, w)
	if !bytes.Contains(saved, []byte("newer")) {
		t.Fatal("a section of a newer program was lost")
	}
	w = decode(t, saved)
	if w.TaskStatus[0] != state.Skipped || !bytes.Equal(saved, encode(t, w)) {
		t.Error("the second load and save is not like the first")
	}
}

func TestDamagedDocuments(t *testing.T) {
	t.Parallel()
	whole := encode(t, everything())
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x40
		if _, err := state.Decode(damaged); err == nil {
			t.Fatalf("byte %d was turned and nobody noticed", i)
		}
		if _, err := state.Decode(whole[:i]); fault.CodeOf(err) != fault.Corrupt {
			t.Fatalf("cut off at byte %d: %v, want code corrupt", i, err)
		}
	}
}

// hostile are documents with a right checksum that claim more than they hold.
func hostile() map[string][]byte {
	header := func(tasks string) section {
		return section{1, `{"id":"w","version":1,"status":"pending","tasks":` + tasks + `}`}
	}
	one := []section{header("1"), {2, "p"}, {3, "\x00"}, {5, "\x00"}, {6, "\x00"}}
	with := func(s ...section) []byte { return document(1, 1, 1, append(slices.Clone(one), s...)...) }
	const huge = "\xff\xff\xff\xff\x0f"
	return map[string][]byte{
		"many tasks":                document(1, 1, 1, header("16000000"), section{2, "p"}),
		"fewer than no tasks":       document(1, 1, 1, header("-1")),
		"no status":                 document(1, 1, 1, section{1, `{"id":"w","tasks":0}`}),
		"no header":                 document(1, 1, 1, section{2, "p"}),
		"a status that nobody has":  document(1, 1, 1, header("1"), section{2, "?"}),
		"a section twice":           document(1, 1, 1, header("0"), section{2, ""}, section{2, ""}),
		"section 0":                 with(section{0, ""}),
		"a section longer than all": checksummed(append([]byte("JQST\x01\x01\x01\x01"), huge...)),
		"a column too short":        document(1, 1, 1, header("2"), section{2, "pp"}, section{3, "\x00"}),
		"a column too long":         document(1, 1, 1, header("1"), section{2, "p"}, section{3, "\x00\x00"}),
		"a task beyond the last":    with(section{8, "\x01\x00"}),
		"a task twice":              with(section{8, "\x00\x00\x00\x00"}),
		"a long reason":             with(section{8, "\x00" + huge}),
		"many frozen parents":       with(section{12, "\x00" + huge}),
		"a parent beyond all":       with(section{12, "\x00\x01\xff\xff\xff\xff\xff\x0f"}),
		"a parent twice":            with(section{12, "\x00\x02\x01\x00"}),
		"many words":                with(section{9, huge}),
		"a word beyond the last":    with(section{9, "\x00\x00\x01\x00\x05\x00\x00\x00"}),
		"an output of no kind":      with(section{7, "\x00\x7f"}),
		"a hash cut off":            with(section{7, "\x00\x82ab"}),
		"an attempt too large":      document(1, 1, 1, header("1"), section{2, "p"}, section{3, "\xff\xff\xff\xff\x7f"}),
		"a number without end":      document(1, 1, 1, header("1"), section{2, "p"}, section{3, strings.Repeat("\xff", 11)}),
		"very many sections":        with(slices.Repeat([]section{{99, ""}}, 5000)...),
	}
}

func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	for name, doc := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := state.Decode(doc); fault.CodeOf(err) != fault.Corrupt {
				t.Errorf("Decode: %v, want code corrupt", err)
			}
		})
	}
}

// TestHostileDocumentsCostLittle does not run in parallel: it measures the
// memory of the whole process.
func TestHostileDocumentsCostLittle(t *testing.T) {
	for name, doc := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := state.Decode(doc)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(64*len(doc)+1<<16) {
			t.Errorf("%s: %d bytes were allocated for a document of %d (%v)", name, used, len(doc), err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, everything()))
	f.Add(encode(f, state.New("w", 0)))
	for _, doc := range hostile() {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 {
			return
		}
		// A right checksum lets the rest of the document reach the columns.
		w, err := state.Decode(checksummed(b[: len(b)-4 : len(b)-4]))
		if err != nil {
			if code := fault.CodeOf(err); code != fault.Corrupt && code != fault.TooNew {
				t.Fatalf("code %s for a bad document: %v", code, err)
			}
			return
		}
		saved := encode(t, w)
		if again := decode(t, saved); !bytes.Equal(saved, encode(t, again)) {
			t.Fatal("what was read is not written and read again as it is")
		}
	})
}
