package store

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/azbus"
	"jobq/store/azstorage"
	"jobq/store/wrap"
)

// Variables of the environment that hold secrets. They are read here and
// nowhere else, and never printed.
const (
	storageConnection = "JOBQ_CONNECTION_STRING"
	busConnection     = "JOBQ_SERVICEBUS_CONNECTION_STRING"
)

const busScheme = "sb://"

// openAzure puts a prefix together from the services that o names: states, index
// and records in the account of l, queues there or where o.Queues says, outputs
// there or where o.Blobs says.
func openAzure(ctx context.Context, l Location, o Options) (*port.Store, error) {
	if secret(l.Storage) {
		return nil, errSecret("STORAGE/PREFIX", storageConnection)
	}
	if err := dag.CheckPrefix(l.Prefix); err != nil {
		return nil, err
	}
	c, err := newConnections(o)
	if err != nil {
		return nil, err
	}
	main, err := c.account(l.Storage)
	if err != nil {
		return nil, err
	}
	base := azstorage.Options{
		Account: main, Prefix: l.Prefix, Credential: c.credential, Transport: c.transport, Create: !o.LookOnly,
	}
	if o.Blobs != "" {
		if err := c.blobs(o.Blobs, &base); err != nil {
			return nil, err
		}
	}
	queues, err := c.queues(l.Storage, o.Queues)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	store, err := azstorage.Open(ctx, base)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	closeStorage := store.Close
	store.Queues = queues
	store.Close = func() error { return errors.Join(closeStorage(), c.close()) }
	return wrap.Retry(store, sched.Real{}, wrap.RetryPolicy{}), nil
}

// connections makes what talks to services and shares it: one credential, one
// transport, one connection a namespace.
type connections struct {
	getenv     func(string) string
	credential azcore.TokenCredential
	transport  *http.Client

	mu     sync.Mutex
	buses  map[string]*azbus.Bus
	queued map[string]port.Queues
}

func newConnections(o Options) (*connections, error) {
	pool := o.HTTPPool
	if pool <= 0 {
		pool = azstorage.DefaultPool
	}
	credential, err := newCredential()
	if err != nil {
		return nil, err
	}
	return &connections{
		getenv: o.getenv(), credential: credential, transport: azstorage.NewTransport(pool),
		buses: map[string]*azbus.Bus{}, queued: map[string]port.Queues{},
	}, nil
}

// account returns the storage account called name. Its connection string, where
// the environment has one for that account, proves the right to use it.
func (c *connections) account(name string) (azstorage.Account, error) {
	if text := c.getenv(storageConnection); text != "" && name != azstorage.EmulatorAccount {
		a, err := azstorage.ParseAccount(text, c.getenv)
		if err != nil {
			return a, err
		}
		if a.Name() == name {
			return a, nil
		}
	}
	return azstorage.ParseAccount(name, c.getenv)
}

// blobs reads JOBQ_WORKFLOW_BLOBS, which is account/container.
func (c *connections) blobs(text string, o *azstorage.Options) error {
	name, container, ok := strings.Cut(text, "/")
	if secret(text) {
		return errSecret("JOBQ_WORKFLOW_BLOBS", storageConnection)
	}
	if !ok || name == "" || container == "" || strings.Contains(text, ":") {
		return fault.Newf(fault.Invalid, "%q is not of the form ACCOUNT/CONTAINER", text).
			WithRemedy("set JOBQ_WORKFLOW_BLOBS to the account and the container for outputs")
	}
	a, err := c.account(name)
	if err != nil {
		return err
	}
	o.Blobs, o.Container = &a, container
	return nil
}

// queues returns the queues of an installation: bare names live in the backend
// that text names (sb://namespace or an account; empty is that of the prefix),
// account/name and sb://namespace/name where they say.
func (c *connections) queues(storage, text string) (port.Queues, error) {
	backend := storage
	if text != "" {
		backend = strings.TrimSuffix(text, "/")
	}
	q, err := c.backend(backend)
	if err != nil {
		return nil, err
	}
	return &router{c: c, bare: q}, nil
}

// backend returns the queues of one account or namespace, the same every time.
func (c *connections) backend(name string) (port.Queues, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q, ok := c.queued[name]; ok {
		return q, nil
	}
	namespace, bus := strings.CutPrefix(name, busScheme)
	// The place travels in every message of a task.
	if !bus && secret(name) {
		return nil, errSecret("JOBQ_WORKFLOW_QUEUES", storageConnection)
	}
	if bus {
		b, err := c.bus(namespace)
		if err != nil {
			return nil, err
		}
		c.buses[name], c.queued[name] = b, b
		return b, nil
	}
	a, err := c.account(name)
	if err != nil {
		return nil, err
	}
	q, err := azstorage.OpenQueues(azstorage.Options{Account: a, Credential: c.credential, Transport: c.transport})
	if err == nil {
		c.queued[name] = q
	}
	return q, err
}

// bus opens a namespace. A connection string of the environment serves it, if it
// is for this namespace.
func (c *connections) bus(namespace string) (*azbus.Bus, error) {
	if secret(namespace) {
		return nil, errSecret("JOBQ_WORKFLOW_QUEUES", busConnection)
	}
	if namespace == "" || strings.Contains(namespace, "/") {
		return nil, fault.Newf(fault.Invalid, "%q is not of the form sb://NAMESPACE", busScheme+namespace)
	}
	if text := c.getenv(busConnection); text != "" && busOf(text) == namespace {
		return azbus.Open(azbus.Options{ConnectionString: text})
	}
	return azbus.Open(azbus.Options{Namespace: namespace, Credential: c.credential, Transport: c.transport})
}

// secret reports whether a place looks like a connection string, which must not
// be repeated in an error.
func secret(text string) bool { return strings.ContainsAny(text, ";=") }

func errSecret(variable, secretVariable string) error {
	return fault.Newf(fault.Invalid, "%s looks like a connection string; it names a place and holds no secret", variable).
		WithRemedy("put the connection string into " + secretVariable)
}

// busOf returns the namespace of a connection string: the name in the public
// cloud, else the whole host with its port.
func busOf(text string) string {
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(strings.TrimSpace(name), "Endpoint") {
			host := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(value), busScheme), "/")
			return strings.TrimSuffix(host, ".servicebus.windows.net")
		}
	}
	return ""
}

func (c *connections) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, b := range c.buses {
		errs = append(errs, b.Close())
	}
	clear(c.buses)
	return errors.Join(errs...)
}

// router sends each queue name to its backend.
type router struct {
	c    *connections
	bare port.Queues
}

// route splits a queue name into its backend and the name there.
func (r *router) route(name string) (port.Queues, string, error) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return r.bare, name, nil
	}
	q, err := r.c.backend(name[:at])
	return q, name[at+1:], err
}

// Queue implements port.Queues.
func (r *router) Queue(name string) port.Queue {
	q, short, err := r.route(name)
	if err != nil {
		return refusing{name, err}
	}
	return named{q.Queue(short), name}
}

// Ensure implements port.Queues.
func (r *router) Ensure(ctx context.Context, name string) error {
	q, short, err := r.route(name)
	if err != nil {
		return err
	}
	return q.Ensure(ctx, short)
}

// named is a queue that answers by the name it was opened by.
type named struct {
	port.Queue
	name string
}

// Name implements port.Queue.
func (n named) Name() string { return n.name }
