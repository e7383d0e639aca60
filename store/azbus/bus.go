package azbus

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Queues = (*Bus)(nil)

// Options says which namespace is meant and how its queues are. Either
// Namespace and Credential or ConnectionString is needed.
type Options struct {
	// Namespace is a host; a name without a dot is one of the public cloud.
	Namespace  string
	Credential azcore.TokenCredential
	// ConnectionString is never part of an error or a log line.
	ConnectionString string
	// Transport carries what is done over HTTP: making and counting queues. Nil
	// means that of the client library.
	Transport policy.Transporter
	// Dial opens the AMQP connection; nil means TLS, and plain TCP for an emulator.
	Dial func(ctx context.Context) (net.Conn, error)
	// Lock is how long queues lock a message, 5 min, the most that the service
	// allows. Ensure makes queues so, and QueueProps says so until a message of a
	// queue that somebody else made has shown another.
	Lock time.Duration
	// DedupWindow is how long queues know a message id; 7 days.
	DedupWindow time.Duration
	// DeliveryLimit is after how many deliveries the service makes a dead letter; 1000.
	DeliveryLimit int
	// ShortestWait is what a Receive waits at least, since the service must be
	// given time to send; 500 ms.
	ShortestWait time.Duration
	// Gather is how long a Receive that has some messages goes on for more; 20 ms.
	Gather time.Duration
}

func (o Options) withDefaults() Options {
	if o.Lock <= 0 {
		o.Lock = 5 * time.Minute
	}
	if o.DedupWindow <= 0 {
		o.DedupWindow = 7 * 24 * time.Hour
	}
	if o.DeliveryLimit <= 0 {
		o.DeliveryLimit = 1000
	}
	if o.ShortestWait <= 0 {
		o.ShortestWait = 500 * time.Millisecond
	}
	if o.Gather <= 0 {
		o.Gather = 20 * time.Millisecond
	}
	return o
}

// Bus is one namespace. Safe for concurrent use.
type Bus struct {
	o     Options
	admin *admin.Client
	// closing waits for connections that are being closed.
	closing sync.WaitGroup

	mu      sync.Mutex
	current *connection
	closed  bool
	// locks are the lock times that were seen, by queue.
	locks map[string]time.Duration
}

// Open prepares a namespace; it makes no call. The caller closes it. Fails with
// fault.Invalid for options that cannot work.
func Open(o Options) (*Bus, error) {
	o = o.withDefaults()
	var emulator bool
	switch {
	case o.ConnectionString != "":
		o.Namespace, emulator = parse(o.ConnectionString)
	case o.Credential == nil:
		return nil, fault.New(fault.Invalid, "a Service Bus namespace needs a credential or a connection string")
	case o.Namespace != "" && !strings.Contains(o.Namespace, "."):
		o.Namespace += ".servicebus.windows.net"
	}
	if o.Namespace == "" {
		return nil, fault.New(fault.Invalid, "the Service Bus namespace is missing").
			WithRemedy("name it as sb://NAMESPACE")
	}
	if o.Dial == nil {
		o.Dial = dialer(o.Namespace, emulator)
	}
	b := &Bus{o: o, locks: map[string]time.Duration{}}
	clientOptions := &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: o.Transport, Retry: policy.RetryOptions{MaxRetries: -1},
	}}
	if emulator {
		clientOptions.Transport = plain{o.Transport}
	}
	var err error
	if o.ConnectionString != "" {
		b.admin, err = admin.NewClientFromConnectionString(o.ConnectionString, clientOptions)
	} else {
		b.admin, err = admin.NewClient(o.Namespace, o.Credential, clientOptions)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the Service Bus connection string cannot be used")
	}
	return b, nil
}

// parse returns the host of a connection string and whether it is an emulator.
func parse(connectionString string) (host string, emulator bool) {
	for part := range strings.SplitSeq(connectionString, ";") {
		key, value, _ := strings.Cut(part, "=")
		switch {
		case strings.EqualFold(key, "Endpoint"):
			if u, err := url.Parse(value); err == nil {
				host = u.Host
			}
		case strings.EqualFold(key, "UseDevelopmentEmulator"):
			emulator, _ = strconv.ParseBool(value)
		}
	}
	return host, emulator
}

// plain speaks HTTP where the client library knows HTTPS only. Emulators that
// name no port have this API on their own.
type plain struct{ next policy.Transporter }

const emulatorPort = "5300"

func (p plain) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	if r.URL.Port() == "" {
		r.URL.Host = net.JoinHostPort(r.URL.Hostname(), emulatorPort)
	}
	if p.next == nil {
		return http.DefaultClient.Do(r)
	}
	return p.next.Do(r)
}

// Queue opens a queue, or the dead-letter queue of one, by its name.
func (b *Bus) Queue(name string) port.Queue { return b.queue(name) }

// Close ends the connection. Calls fail from then on.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	c := b.current
	b.mu.Unlock()
	if c != nil {
		b.discard(c)
	}
	b.closing.Wait()
	return nil
}

// connection returns the one that all calls share. It is opened by its first
// call.
func (b *Bus) connection() (*connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, fault.New(fault.Unavailable, "the store was closed")
	}
	if b.current != nil {
		return b.current, nil
	}
	c := newConnection()
	o := &azservicebus.ClientOptions{
		ApplicationID: "jobq",
		RetryOptions:  azservicebus.RetryOptions{MaxRetries: -1},
		// In spite of its name: the client speaks AMQP over whatever this returns.
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return b.dial(ctx, c)
		},
	}
	var err error
	if b.o.ConnectionString != "" {
		c.client, err = azservicebus.NewClientFromConnectionString(b.o.ConnectionString, o)
	} else {
		c.client, err = azservicebus.NewClient(b.o.Namespace, patient{b.o.Credential}, o)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the Service Bus namespace cannot be used")
	}
	b.current = c
	return c, nil
}

// lock returns how long a queue locks a message, as far as is known.
func (b *Bus) lock(q *queue) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.locks[q.key], b.o.Lock)
}

// sawLock tells how long the service has locked a message.
func (b *Bus) sawLock(q *queue, lock time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.locks[q.key] = max(lock.Round(time.Second), time.Second)
}

// discard makes the next call open a new connection, and closes c in the
// background, since a broken one may take its time.
func (b *Bus) discard(c *connection) {
	b.mu.Lock()
	if b.current == c {
		b.current = nil
	}
	b.mu.Unlock()
	c.discarded.Store(true)
	c.once.Do(func() { b.closing.Go(c.close) })
}
