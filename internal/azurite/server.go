package azurite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// startTime is generous: a busy machine needs 20 seconds.
	startTime = 90 * time.Second
	// stopTime is how long the emulator may take to end by itself.
	stopTime = 5 * time.Second
	// accounts is how many accounts a server has besides devstoreaccount1.
	accounts = 2000
	// secret is the key of each of them.
	secret = "a2V5"
	// emulatorKey is the well-known key of devstoreaccount1.
	emulatorKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Server is a running emulator. Safe for concurrent use.
type Server struct {
	// Blob, Queue and Table are the addresses of its services, without an account.
	Blob, Queue, Table string
	process            *os.Process
	ended              chan struct{}
	taken              atomic.Int64
}

// start installs the emulator where needed and starts it on free ports, with its
// data in dir, or in memory where that is empty.
func start(ctx context.Context, dir string) (*Server, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errMissing
	}
	program, err := install(ctx)
	if err != nil {
		return nil, err
	}
	data := []string{"--inMemoryPersistence"}
	if dir != "" {
		data = []string{"--location", dir}
	}
	// An emulator that closes a connection after five idle seconds resets the request
	// that is just being written on it; the service leaves them open for minutes.
	cmd := exec.Command(node, append(data, "--skipApiVersionCheck", "--silent", "--disableTelemetry",
		"--blobKeepAliveTimeout", "600", "--queueKeepAliveTimeout", "600", "--tableKeepAliveTimeout", "600",
		"--blobPort", "0", "--queuePort", "0", "--tablePort", "0")...)
	cmd.Args = slices.Insert(cmd.Args, 1, filepath.Join(program, "node_modules", "azurite", "dist", "src", "azurite.js"))
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+accountList())
	dieWithUs(cmd)
	return run(ctx, cmd)
}

func accountList() string {
	var b strings.Builder
	fmt.Fprintf(&b, "devstoreaccount1:%s", emulatorKey)
	for i := range accounts {
		fmt.Fprintf(&b, ";%s:%s", accountName(i), secret)
	}
	return b.String()
}

func accountName(i int) string { return fmt.Sprintf("test%04d", i) }

// run starts cmd and waits until it has said where its services are.
func run(ctx context.Context, cmd *exec.Cmd) (*Server, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = in, in
	s := &Server{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel ends the emulator with this thread, so the thread must stay.
		runtime.LockOSThread()
		defer close(s.ended)
		err := cmd.Start()
		_ = in.Close()
		if err == nil {
			s.process = cmd.Process
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		_ = out.Close()
		return nil, err
	}
	ready := make(chan error, 1)
	go s.watch(out, ready)
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case err = <-ready:
	case <-timer.C:
		err = fmt.Errorf("azurite has not started within %v", startTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// watch reads what the emulator says until it ends.
func (s *Server) watch(out *os.File, ready chan<- error) {
	defer func() { _ = out.Close() }()
	var said []string
	lines := bufio.NewScanner(out)
	for left := 3; lines.Scan(); {
		if left == 0 {
			continue
		}
		said = append(said, lines.Text())
		service, address, ok := strings.Cut(lines.Text(), " service is successfully listening at ")
		if !ok {
			continue
		}
		if _, err := url.Parse(address); err != nil {
			continue
		}
		switch {
		case strings.HasSuffix(service, "Blob"):
			s.Blob = address
		case strings.HasSuffix(service, "Queue"):
			s.Queue = address
		case strings.HasSuffix(service, "Table"):
			s.Table = address
		}
		if left--; left == 0 {
			ready <- nil
		}
	}
	ready <- errors.New("azurite ended: " + strings.Join(said, "\n"))
}

// stop ends the emulator and waits for it.
func (s *Server) stop() {
	_ = s.process.Signal(os.Interrupt)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-s.ended:
		return
	case <-timer.C:
	}
	_ = s.process.Kill()
	<-s.ended
}

// Account returns the connection string of an account that nobody else has.
func (s *Server) Account() (string, error) {
	n := int(s.taken.Add(1)) - 1
	if n >= accounts {
		return "", fmt.Errorf("all %d accounts of the emulator are taken", accounts)
	}
	return s.connection(accountName(n), secret), nil
}

// Connection returns the connection string of devstoreaccount1, which processes
// find by Env.
func (s *Server) Connection() string { return s.connection("devstoreaccount1", emulatorKey) }

func (s *Server) connection(account, key string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%[1]s;AccountKey=%[2]s;BlobEndpoint=%[3]s/%[1]s;QueueEndpoint=%[4]s/%[1]s;TableEndpoint=%[5]s/%[1]s;",
		account, key, s.Blob, s.Queue, s.Table)
}

// Env returns the variables by which a process finds this server as
// devstoreaccount1, each as NAME=value.
func (s *Server) Env() []string {
	var env []string
	for _, v := range []struct{ name, address string }{{"BLOB_PORT", s.Blob}, {"QUEUE_PORT", s.Queue}, {"TABLE_PORT", s.Table}} {
		env = append(env, v.name+"="+v.address[strings.LastIndexByte(v.address, ':')+1:])
	}
	return env
}
