package local

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

const (
	liveDir = "live"
	// probeHidden is how often a receive with nothing to give asks for the
	// owners of hidden messages, probeBusy how often one that has something.
	probeHidden = 200 * time.Millisecond
	probeBusy   = time.Second
)

// liveFile proves that this process lives: it holds a lock that the kernel
// drops with the last descriptor, wherever that was inherited to.
type liveFile struct {
	id   string
	file *os.File
	root *os.Root
}

// createLive makes and locks the file of this process.
//
// A file that is not locked belongs to the dead and may be removed by anybody
// who holds a shared lock on it while he does. A new file is unlocked for a
// moment: if somebody looks in that moment, the exclusive lock fails or the name
// is gone, and another id is tried. Ids are never used again, so a file that is
// absent stays absent.
func createLive(root *os.Root, home, kind string) (*liveFile, error) {
	for range 20 {
		l := &liveFile{id: newProcessID(), root: root}
		file, err := root.OpenFile(l.name(), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, classify(err, home, "announce this process")
		}
		l.file = file
		// Before it is locked: whoever finds it locked may read what it says.
		if _, err := file.WriteString(describe(kind)); err != nil {
			return nil, errors.Join(classify(err, home, "announce this process"), l.close())
		}
		if l.lock() {
			return l, nil
		}
		_ = file.Close()
	}
	return nil, fault.Newf(fault.Unavailable, "cannot lock a file in %s; other processes look at it all the time", path.Join(home, liveDir))
}

// schemaMark stands in a live file before the version of the schema that its process
// knows.
const schemaMark = " schema "

// describe is what the live file of this process says.
func describe(kind string) string {
	return fmt.Sprintf("%s pid %d since %s%s%d\n", cmp.Or(kind, "process"), os.Getpid(), time.Now().Format(time.RFC3339), schemaMark, len(schema))
}

// schemaOf returns the version in what a live file says; the first programs named none.
func schemaOf(said string) int {
	_, text, _ := strings.Cut(strings.TrimSpace(said), schemaMark)
	version, _ := strconv.Atoi(text)
	return version
}

// olderUser is an older program that has the home open: what its live file says.
type olderUser string

func (u olderUser) Error() string { return "an older jobq is using this home: " + string(u) }

// noOlderUser fails while a process that does not know the newest schema has the
// database at path open. One that comes later waits for the lock of lockOpen.
func noOlderUser(root *os.Root, path string) error {
	entries, err := fs.ReadDir(root.FS(), liveDir)
	if err != nil {
		return classify(err, path, "list processes")
	}
	for _, entry := range entries {
		if !locked(root, entry.Name()) {
			continue
		}
		said, err := root.ReadFile(liveDir + "/" + entry.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return classify(err, path, "list processes")
		}
		if schemaOf(string(said)) < len(schema) {
			return fault.Wrapf(fault.Unavailable, olderUser(strings.TrimSpace(string(said))), "%s cannot be upgraded now", path).
				WithRemedy("let it end, or stop it, and try again")
		}
	}
	return nil
}

// lock reports whether the file is locked and still known by its name.
func (l *liveFile) lock() bool {
	if got, err := tryLock(l.file, true); err != nil || !got {
		return false
	}
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	named, err := l.root.Stat(l.name())
	return err == nil && os.SameFile(mine, named)
}

func (l *liveFile) name() string { return path.Join(liveDir, l.id) }

// close drops the lock of this process and, unless a guardian holds it on, the
// file.
func (l *liveFile) close() error {
	err := l.file.Close()
	if !locked(l.root, l.id) {
		if gone := l.root.Remove(l.name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// locked reports whether the process called id, or its guardian, lives. In
// doubt it does. Looking takes a shared lock, so that two who look do not take
// each other for the owner.
func locked(root *os.Root, id string) bool {
	file, err := root.Open(path.Join(liveDir, id))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	got, err := tryLock(file, false)
	return err != nil || !got
}

// removeLive removes the file of the process called id, which was found dead, and
// reports whether it did. It looks once more under the lock: a process that was
// just announcing itself must not lose its file.
func removeLive(root *os.Root, id string) bool {
	name := path.Join(liveDir, id)
	file, err := root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	got, err := tryLock(file, false)
	return err == nil && got && root.Remove(name) == nil
}

// newProcessID returns an id that no process ever had: readable parts first,
// then the time and 80 random bits.
func newProcessID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	host, _, _ = strings.Cut(host, ".")
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, host)
	host = host[:min(len(host), 32)]
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixMilli(), 36) + strings.ToLower(rand.Text()[:16])
}

var processForm = regexp.MustCompile(`^[A-Za-z0-9-]*-[0-9]+-[0-9a-z]{20,}$`)

// processOf returns the process that an id of a membership belongs to.
func processOf(membership string) (string, bool) {
	at := strings.LastIndexByte(membership, '.')
	if at < 0 || !processForm.MatchString(membership[:at]) {
		return "", false
	}
	return membership[:at], true
}

// probes asks whether other processes live. Safe for concurrent use.
type probes struct {
	root *os.Root
	own  string
	mu   sync.Mutex
	// last is when the owners of a queue's hidden messages were asked for.
	last map[string]time.Time
}

func newProbes(root *os.Root, own string) *probes {
	return &probes{root: root, own: own, last: map[string]time.Time{}}
}

// alive reports whether the process called id lives.
func (p *probes) alive(id string) bool { return id == p.own || locked(p.root, id) }

// due reports whether queue was not looked at for interval, and notes that it
// is now.
func (p *probes) due(queue string, interval time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.last[queue]) < interval {
		return false
	}
	p.last[queue] = time.Now()
	return true
}

// liveness judges the owner of a record. joined says that its membership is
// known: who left is no longer the owner of anything, though the process lives.
func (p *probes) liveness(owner string, joined bool) port.Liveness {
	process, ok := processOf(owner)
	switch {
	case !ok:
		return port.UnknownOwner
	case joined && p.alive(process):
		return port.AliveOwner
	default:
		return port.DeadOwner
	}
}
