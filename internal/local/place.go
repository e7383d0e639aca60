package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/state"
)

// place is what a run keeps about where it was started.
type place struct {
	Dir string `json:"dir"`
	// Bytes is the directory where JSON has no text for its name.
	Bytes []byte `json:"bytes,omitempty"`
}

func placeOf(dir string) place {
	if utf8.ValidString(dir) {
		return place{Dir: dir}
	}
	return place{Dir: dir, Bytes: []byte(dir)}
}

func (p place) directory() string { return cmp.Or(string(p.Bytes), p.Dir) }

// life is what the store knows of the present life of the workflow.
type life struct {
	// dir is where it was run last, empty where it never was.
	dir string
	// places is how many were kept under placeName.
	places uint32
	// attempt is the first of this life.
	attempt uint32
	ended   bool
}

// directory returns what a relative cwd is relative to: where the run was first
// started or has moved to, whoever resumes it from wherever. Where that is no
// directory it fails, before anything begins.
func (r *run) directory(ctx context.Context) (string, error) {
	l, err := r.life(ctx)
	if err != nil {
		return "", err
	}
	dir := cmp.Or(r.o.Moved, l.dir, r.o.Dir)
	if l.ended && !r.o.Retry {
		return dir, nil // nothing will run
	}
	return dir, r.checkDirectory(dir)
}

func (r *run) checkDirectory(dir string) error {
	again := "jobq run --resume " + r.o.WorkflowID
	if r.o.Retry {
		again = "jobq retry " + r.o.WorkflowID + " --run"
	}
	remedy := "put it back, or say where it is now: `" + again + " --cwd DIR`; no task was started"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Newf(fault.Invalid, "run %s belongs to the directory %q, which does not exist", r.o.WorkflowID, dir).WithRemedy(remedy)
	case err != nil:
		return fault.Wrapf(fault.Invalid, err, "run %s belongs to the directory %q, which cannot be used", r.o.WorkflowID, dir).WithRemedy(remedy)
	case !info.IsDir():
		return fault.Newf(fault.Invalid, "run %s belongs to the directory %q, which is a file", r.o.WorkflowID, dir).WithRemedy(remedy)
	}
	return nil
}

// keepDirectory makes dir the place of the life that has begun.
func (r *run) keepDirectory(ctx context.Context, dir string) error {
	l, err := r.life(ctx)
	if err != nil || l.dir == dir {
		return err
	}
	body, err := json.Marshal(placeOf(dir))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the place of the run cannot be encoded")
	}
	return r.store.Outputs.Put(ctx, placeName(r.o.WorkflowID, l.attempt, l.places+1), body)
}

// placeName names the n-th place of a life by its first attempt: a purge that was
// held up in an earlier life leaves it alone, one of this life removes it. No task can
// have that name.
func placeName(workflow string, attempt, n uint32) string {
	return msg.StartOutput(workflow, "__run", attempt, n)
}

// life reads what is known of the present life; it is empty where none has begun.
func (r *run) life(ctx context.Context) (life, error) {
	doc, err := r.store.States.Load(ctx, r.o.WorkflowID, "")
	if fault.Is(err, fault.NotFound) {
		return life{}, nil
	}
	if err != nil {
		return life{}, err
	}
	s, err := state.Decode(doc.Body)
	if err != nil || s.Status == state.WorkflowPurged {
		return life{}, err
	}
	l := life{attempt: s.BornAttempt + 1, ended: s.Status.Ended()}
	// Earlier programs kept one place, under a name that all lives shared.
	if l.dir, err = r.readPlace(ctx, path.Join(r.o.WorkflowID, "__run.json")); err != nil {
		return life{}, err
	}
	for {
		dir, err := r.readPlace(ctx, placeName(r.o.WorkflowID, l.attempt, l.places+1))
		if err != nil || dir == "" {
			return l, err
		}
		l.dir, l.places = dir, l.places+1
	}
}

// readPlace returns the directory that is kept under name, empty where none is.
func (r *run) readPlace(ctx context.Context, name string) (string, error) {
	body, err := r.store.Outputs.Get(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var p place
	if err := json.Unmarshal(body, &p); err != nil {
		return "", fault.Wrapf(fault.Corrupt, err, "the place of run %s cannot be read", r.o.WorkflowID)
	}
	return p.directory(), nil
}
