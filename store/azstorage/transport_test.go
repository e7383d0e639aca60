package azstorage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/store/azstorage"
)

// transport answers in place of the service, or passes on.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f transport) client() *http.Client { return &http.Client{Transport: f} }

// answer is what a service says.
type answer struct {
	status int
	code   string
	body   string
	header map[string]string
}

func (a answer) to(r *http.Request) (*http.Response, error) {
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}, "X-Ms-Request-Id": {"42"}}
	if a.code != "" {
		h.Set("x-ms-error-code", a.code)
	}
	for name, value := range a.header {
		h.Set(name, value)
	}
	return &http.Response{
		StatusCode: a.status, Status: strconv.Itoa(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

// scripted returns a store whose service gives the answers in turn, the last
// one again and again, and how often it was asked.
func scripted(t *testing.T, answers ...answer) (*port.Store, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	s, err := azstorage.Open(t.Context(), azstorage.Options{
		Account: parse(t, scriptedAccount), Prefix: "Demo",
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			n := int(asked.Add(1))
			return answers[min(n, len(answers))-1].to(r)
		}).client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, asked
}

const scriptedAccount = "DefaultEndpointsProtocol=https;AccountName=scripted;AccountKey=c2VjcmV0LWtleQ==;EndpointSuffix=core.windows.net"

func parse(t testing.TB, text string) azstorage.Account {
	t.Helper()
	a, err := azstorage.ParseAccount(text, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var errDropped = errors.New("the connection broke")

// network is a way to the service that can be disturbed.
type network struct {
	inner http.RoundTripper
	mu    sync.Mutex
	// refuse answers a request that never reaches the service; nil passes it on.
	refuse func(*http.Request) (*http.Response, error)
	// lose drops the answers of the requests for which it is true.
	lose func(*http.Request) bool
}

func newNetwork() *network { return &network{inner: azstorage.NewTransport(16).Transport} }

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	refuse, lose := n.refuse, n.lose
	n.mu.Unlock()
	if refuse != nil {
		if resp, err := refuse(r); resp != nil || err != nil {
			return resp, err
		}
	}
	resp, err := n.inner.RoundTrip(r)
	if err == nil && lose != nil && lose(r) {
		_ = resp.Body.Close()
		return nil, errDropped
	}
	return resp, err
}

// set changes both disturbances at once.
func (n *network) set(refuse func(*http.Request) (*http.Response, error), lose func(*http.Request) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse, n.lose = refuse, lose
}

func (n *network) heal() { n.set(nil, nil) }

func unreachable(*http.Request) (*http.Response, error) { return nil, errDropped }

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

// cleanupContext is for calls after the test, whose own context has ended.
func cleanupContext(tb testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Second)
}
