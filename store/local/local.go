package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// Options says which store to open and for whom.
type Options struct {
	// Home is the directory of the store; it is created when absent.
	Home string
	// Prefix is the name space of one installation, without regard to case.
	// Queues are shared by all prefixes of one home.
	Prefix string
	// Kind says to people what this process is: worker, coordinator, run.
	Kind string
	// Logger hears of what was cleaned up. Nil is silent.
	Logger *slog.Logger
	// LookOnly opens a home that cannot be written all the same, to look at it: every
	// write then fails with the reason, mostly fault.Denied.
	LookOnly bool
}

// Sizes that the store declares, in bytes.
const (
	maxState   = 256 << 20
	maxBlob    = 1 << 30
	maxMessage = 1 << 20
	// inlineBlob is the largest output that is kept inside the database.
	inlineBlob = 64 << 10
)

var prefixForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{1,34}$`)

// Store is an open home. Safe for concurrent use.
type Store struct {
	home   string
	prefix string
	logger *slog.Logger
	root   *os.Root
	live   *liveFile
	// opened is the database file as it was opened.
	opened fs.FileInfo
	write  *writer
	read   *reader
	bell   *bell
	probes *probes
	logs   *logFiles
	events *logFiles
	// queues holds the names of queues that were seen in the database.
	queues sync.Map
	// joins numbers the memberships and outputFiles the large outputs of this process.
	joins, outputFiles atomic.Uint64
	closed             atomic.Bool
	// looking says that the home cannot be written.
	looking bool
}

// Open opens the store in o.Home, creating or upgrading it where needed.
//
// Fails with fault.Invalid for a bad prefix or a network file system,
// fault.Unavailable on a system without flock(2) and for a home that an older jobq
// keeps from being upgraded, fault.Denied for a home that
// cannot be written, fault.Corrupt for a damaged database and fault.TooNew for
// one that a newer jobq wrote.
func Open(ctx context.Context, o Options) (*Store, error) {
	if !prefixForm.MatchString(o.Prefix) {
		return nil, fault.Newf(fault.Invalid, "prefix %q is not a letter followed by 1 to 34 letters or digits", o.Prefix)
	}
	if err := supported(); err != nil {
		return nil, err
	}
	s, err := openToWrite(ctx, o)
	_, older := errors.AsType[olderUser](err)
	if !older && !fault.Is(err, fault.Denied) {
		return s, err
	}
	if !older {
		err = unwritable(err, o.Home)
	}
	if o.LookOnly {
		return openToLook(ctx, o, err)
	}
	return nil, err
}

func openToWrite(ctx context.Context, o Options) (*Store, error) {
	home, err := prepareHome(o.Home)
	if err != nil {
		return nil, err
	}
	s := newStore(home, o)
	if err := s.open(ctx, o.Kind); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func newStore(home string, o Options) *Store {
	s := &Store{home: home, prefix: strings.ToLower(o.Prefix), logger: o.Logger, bell: newBell()}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// open fills s. What it opened before an error is left for release.
func (s *Store) open(ctx context.Context, kind string) (err error) {
	if s.root, err = os.OpenRoot(s.home); err != nil {
		return classify(err, s.home, "open the home directory")
	}
	if s.live, err = createLive(s.root, s.home, kind); err != nil {
		return err
	}
	s.findFiles()
	path := filepath.Join(s.home, databaseFile)
	if err := prepareDatabase(ctx, s.root, path); err != nil {
		return err
	}
	if s.opened, err = s.root.Stat(databaseFile); err != nil {
		return classify(err, path, "open the database")
	}
	if s.read, err = openReader(path); err != nil {
		return err
	}
	if s.write, err = openWriter(ctx, path, s.bell); err != nil {
		return err
	}
	return s.removeDead(ctx)
}

// findFiles sets what works on files below the root.
func (s *Store) findFiles() {
	s.probes = newProbes(s.root, s.live.id)
	folds := foldsCase(s.root)
	s.logs = &logFiles{root: s.root, home: s.home, dir: filepath.Join("logs", s.prefix), folds: folds}
	s.events = &logFiles{root: s.root, home: s.home, dir: filepath.Join("events", s.prefix), folds: folds}
}

// Port returns the interfaces of core/port. Its Close is that of s.
func (s *Store) Port() *port.Store {
	return &port.Store{
		States:   states{s},
		Records:  records{s},
		Index:    index{s},
		Queues:   queues{s},
		Outputs:  blobs{s},
		Events:   s.events,
		TaskLogs: s.logs,
		Leases:   leases{s},
		Presence: presence{s},
		Finisher: finisher{s},
		Scratch:  filepath.Join(s.home, scratchDir, s.live.id),
		Props:    port.Props{MaxState: maxState, MaxBlob: maxBlob, FileOutputs: true},
		Present:  s.Present,
		Close:    s.Close,
	}
}

// Home returns the directory of the store as an absolute path.
func (s *Store) Home() string { return s.home }

// Present fails with fault.Corrupt when the database file that was opened is no
// longer in its place: what is still written through the open file is lost, and
// other processes work on another one.
func (s *Store) Present() error {
	path := filepath.Join(s.home, databaseFile)
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // no proof of a loss
	}
	if err == nil && os.SameFile(info, s.opened) {
		return nil
	}
	return fault.Newf(fault.Corrupt, "%s was removed or replaced while it was in use", path).
		WithRemedy("what it held is lost to this process; find out who removed it, then run the file again")
}

// Close answers the writes that wait and gives up the home. Messages that this
// process still holds are free from then on. A second call does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.release()
}

func (s *Store) release() error {
	var errs []error
	if s.write != nil {
		errs = append(errs, s.write.close())
	}
	if s.read != nil {
		errs = append(errs, s.read.close())
	}
	// The lock is the last thing to go: until here others must not think that
	// the writes above come from the dead.
	if s.live != nil && !s.looking {
		errs = append(errs, s.leave())
	}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	return errors.Join(errs...)
}

// leave gives up the lock of this process. Its file stays where scratch files do, so
// that the next Open finds them.
func (s *Store) leave() error {
	if s.removeScratch(context.Background(), s.live.id) {
		return s.live.close()
	}
	return s.live.file.Close()
}

// check is what every method asks before it does anything.
func (s *Store) check(ctx context.Context) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if s.closed.Load() {
		return errClosed()
	}
	return nil
}

func errClosed() error { return fault.New(fault.Unavailable, "the store was closed") }

func canceled(ctx context.Context) error {
	return fault.Wrap(fault.Canceled, context.Cause(ctx), "the call was stopped")
}

func tooLarge(what string, size, limit int) error {
	return fault.New(fault.TooLarge, fmt.Sprintf("%s has %d bytes, the limit is %d", what, size, limit))
}

// now is the clock of the store: that of the machine, in nanoseconds.
func now() int64 { return time.Now().UnixNano() }
