package cli

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobq/core/fault"
	"jobq/internal/config"
	"jobq/internal/obs"
	"jobq/store"
)

// app is one call of Main: its streams, its environment and, once the verb is
// known, its settings.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      map[string]string

	// place is STORAGE/PREFIX, or STORAGE/QUEUE, from in front of the verb.
	place  string
	values *config.Values
	log    *slog.Logger
	logs   diversion
	// tellPlace says that the verb changes or serves a prefix, so that one that was
	// assumed must be named.
	tellPlace bool
	// where names the store that was opened, for errors.
	where string
	// onKill holds what a verb does before the process ends at once, if it is more
	// than to say so.
	onKill atomic.Pointer[func()]
	// slow is the part of the verb in which commands are given time after a stop.
	slow slowPart
	// unread says that nobody seems to read what we write.
	unread atomic.Bool
}

// killed answers whoever does not want to wait for a clean stop: the process ends when
// it returns.
func (a *app) killed() {
	if say := a.onKill.Load(); say != nil {
		(*say)()
		return
	}
	a.unread.Store(true) // perhaps: that is why it did not end by itself
	a.tell("jobq: killed\n")
}

const (
	// lastLines bounds how long the end of the process waits for whoever reads what we
	// write: a pager that stands still would hold it up for ever.
	lastLines = 500 * time.Millisecond
	// readTime is how long after a stop whoever reads what we write is waited for.
	readTime = 10 * time.Second
)

// tell writes last lines to standard error.
func (a *app) tell(text string) {
	write := func() { io.WriteString(a.err, text) } // nothing is left to tell an error to
	if a.unread.Load() {
		atMost(lastLines, write)
	} else {
		write()
	}
}

// atMost calls f and reports whether it returned within d. It is for the end of the
// process, which ends f too.
func atMost(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

func (a *app) lookup(name string) (string, bool) {
	v, ok := a.env[name]
	return v, ok
}

// configure reads the settings of verb. A service logs what happens, other verbs
// only what is wrong, and that in sentences where a person reads it who has not
// asked for the log.
func (a *app) configure(verb string, flags map[string]string, service bool) error {
	values, err := config.Resolve(verb, a.lookup, flags)
	a.logs.divert(a.err)
	a.values = values
	base := slog.LevelWarn
	if service {
		base = slog.LevelInfo
	}
	level := obs.Level(base, values.Int(config.Verbose), a.quiet())
	a.log = obs.NewLogger(&a.logs, obs.Options{Level: level, JSON: values.Bool(config.LogJSON)})
	if _, people := terminal(a.err); people && !service && values.Int(config.Verbose) == 0 && !values.Bool(config.LogJSON) {
		a.log = slog.New(sentences{to: &a.logs, level: level})
	}
	if err != nil {
		return err
	}
	switch c := values.Text(config.Color); c {
	case "auto", "always", "never":
		return nil
	default:
		return fault.Newf(fault.Invalid, "%s: %q is none of auto, always and never", values.Get(config.Color).Source, c)
	}
}

func (a *app) quiet() bool { return a.values.Bool(config.Quiet) }

// home returns the directory of the store called local.
func (a *app) home() (string, error) {
	v := a.values.Get(config.Home)
	if v.Text == "" && v.Source == "--"+config.Home {
		return "", fault.New(fault.Invalid, "--home is empty").WithRemedy("is a variable of the shell not set?")
	}
	if v.Text != "" {
		return v.Text, nil
	}
	return store.DefaultHome(func(name string) string { return a.env[name] })
}

// user names who asks, for the event log.
func (a *app) user() string {
	name := a.env["USER"]
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		return name + "@" + host
	}
	return name
}

// commandLine returns what to type for a further verb about the same place.
func (a *app) commandLine(words ...string) string {
	line := []string{"jobq"}
	if a.place != "" {
		line = append(line, a.place)
	}
	if v := a.values.Get(config.Home); v.Source == "--"+config.Home {
		words = append(words, "--"+config.Home, v.Text)
	}
	for _, w := range words {
		line = append(line, shellQuote(w))
	}
	return strings.Join(line, " ")
}

// shellQuote returns w as a shell reads it as one word.
func shellQuote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,~", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// slowPart is a part of a verb that itself bounds what it does after a stop. What is
// written in it, but for log lines, must be bounded too.
type slowPart struct {
	mu    sync.Mutex
	lasts bool
	ended time.Time
}

// begin begins the part; the returned function ends it.
func (p *slowPart) begin() (end func()) {
	p.set(true)
	return func() { p.set(false) }
}

func (p *slowPart) set(lasts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lasts, p.ended = lasts, time.Now()
}

// since returns how long ago the part ended, 0 while it lasts.
func (p *slowPart) since() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lasts {
		return 0
	}
	return time.Since(p.ended)
}

// diversion is where log lines go: to standard error, or while a screen owns
// that, through the screen.
type diversion struct {
	// late ends when a line may not hold up the verb any longer; nil is never.
	late <-chan struct{}

	mu sync.Mutex
	to io.Writer
	// unread says that a line was not taken then: no further one is tried.
	unread bool
}

// Write implements io.Writer.
func (d *diversion) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unread {
		return 0, os.ErrDeadlineExceeded
	}
	line, to := bytes.Clone(p), d.to // what is not taken outlasts us
	written := make(chan error, 1)
	go func() {
		_, err := to.Write(line)
		written <- err
	}()
	select {
	case err := <-written:
		return len(p), err
	case <-d.late:
	}
	select {
	case err := <-written:
		return len(p), err
	case <-time.After(lastLines):
		d.unread = true
		return 0, os.ErrDeadlineExceeded
	}
}

func (d *diversion) divert(to io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
}
