package azstorage

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"jobq/core/fault"
	"jobq/core/port"
)

// DefaultPool is the number of connections to one host where Options name none.
const DefaultPool = 100

const (
	// callTimeout bounds one call, its body included.
	callTimeout = 2 * time.Minute
	// answerTimeout bounds the time from the whole request to the first byte of its
	// answer. The service ends its own work after 30 s.
	answerTimeout = 35 * time.Second
)

// Options says where a prefix keeps what.
type Options struct {
	// Account holds states, records, logs and the index.
	Account Account
	// Prefix is the name space of the installation: 2 to 35 letters and digits.
	Prefix string
	// Queues holds the queues; nil means Account.
	Queues *Account
	// Blobs and Container hold outputs and task files. Without a Container,
	// outputs are kept in that of the prefix and task files are refused. A nil
	// Blobs means Account.
	Blobs     *Account
	Container string
	// Credential proves the right to use accounts that have no secret of their
	// own. One value serves the whole process.
	Credential azcore.TokenCredential
	// Transport is shared by all clients; nil means NewTransport(DefaultPool).
	Transport *http.Client
	// Create makes the containers and the table that are missing. Set it in what submits, coordinates or works, not in what only looks: a slip in
	// a prefix would leave empty containers behind.
	Create bool
}

// Open returns the store of a prefix. It makes calls only where o.Create is
// set, and then it goes on without what it may not create: the calls that need
// it will say so. Closing the store closes idle connections of a transport that
// Open made itself.
//
// Fails with fault.Invalid for names that the service would refuse, and with
// the codes of core/port.
func Open(ctx context.Context, o Options) (*port.Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	stop := func() error { return nil }
	if o.Transport == nil {
		o.Transport = NewTransport(DefaultPool)
		stop = func() error { o.Transport.CloseIdleConnections(); return nil }
	}
	s, err := o.clients()
	if err != nil {
		return nil, err
	}
	if o.Create {
		if err := s.create(ctx); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return &port.Store{
		States:   states{s.workflows},
		Records:  records{s.runs},
		Index:    &index{t: s.index, known: map[string]knownRow{}},
		Queues:   s.queues,
		Outputs:  s.outputs,
		Events:   &logs{p: s.workflows, at: map[string]int{}},
		TaskLogs: &logs{p: s.runs, at: map[string]int{}},
		Leases:   leases{s.workflows},
		Presence: presence{p: s.runs},
		Props:    port.Props{MaxState: maxBody, MaxBlob: maxBody, FileOutputs: o.Container != ""},
		Close:    stop,
	}, nil
}

// OpenQueues returns the queues of one account, for definitions that name
// queues of several. Of o it reads Account, Credential and Transport.
func OpenQueues(o Options) (port.Queues, error) {
	if o.Transport == nil {
		o.Transport = NewTransport(DefaultPool)
	}
	client, err := o.queueClient(o.Account)
	if err != nil {
		return nil, err
	}
	return queues{client, o.Account.Name()}, nil
}

// NewTransport returns an HTTP client for all clients of a process. pool bounds
// the connections to one host; at least 1.
func NewTransport(pool int) *http.Client {
	pool = max(pool, 1)
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: answerTimeout,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   pool,
		MaxConnsPerHost:       pool,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true,
	}}
}

// check holds every name to its rule before anything is called.
func (o Options) check() error {
	if err := checkPrefix(o.Prefix); err != nil {
		return err
	}
	if o.Container == "" {
		if o.Blobs != nil {
			return fault.Newf(fault.Invalid, "account %v is to hold the outputs, but no container is named", *o.Blobs).
				WithRemedy("write JOBQ_WORKFLOW_BLOBS as account/container")
		}
		return nil
	}
	return checkContainerName(o.Container)
}

// services are the clients that a store works with.
type services struct {
	workflows, runs *place
	outputs         outputs
	index           *table
	queues          queues
}

func (o Options) clients() (*services, error) {
	name := strings.ToLower(o.Prefix)
	blobs, err := o.blobClient(o.Account)
	if err != nil {
		return nil, err
	}
	at := func(c *service.Client, a Account, container string) *place {
		return &place{c.NewContainerClient(container), a.Name(), container}
	}
	s := &services{
		workflows: at(blobs, o.Account, name+"-workflows"),
		runs:      at(blobs, o.Account, name+"-runs"),
		outputs:   outputs{main: at(blobs, o.Account, name+"-outputs")},
	}
	if o.Container != "" {
		a := o.account(o.Blobs)
		other, err := o.blobClient(a)
		if err != nil {
			return nil, err
		}
		s.outputs = outputs{main: at(other, a, o.Container), also: s.outputs.main}
	}
	tables, err := o.tableClient(o.Account)
	if err != nil {
		return nil, err
	}
	indexName := o.Prefix + "WorkflowsIndex"
	s.index = &table{tables.NewClient(indexName), o.Account.Name(), indexName}
	a := o.account(o.Queues)
	client, err := o.queueClient(a)
	s.queues = queues{client, a.Name()}
	return s, err
}

func (o Options) account(other *Account) Account {
	if other == nil {
		return o.Account
	}
	return *other
}

// create makes what is missing, all at once. What may not be created is left to
// the calls that need it.
func (s *services) create(ctx context.Context) error {
	jobs := []func(context.Context) error{s.workflows.create, s.runs.create, s.outputs.main.create, s.index.create}
	if s.outputs.also != nil {
		jobs = append(jobs, s.outputs.also.create)
	}
	return worst(each(len(jobs), func(i int) error {
		if err := jobs[i](ctx); !fault.Is(err, fault.Denied) {
			return err
		}
		return nil
	}))
}

// clientOptions turns the repeats of the SDK off: store/wrap decides on them by
// what a repeat can do.
func (o Options) clientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{
		// 0 would mean the default of 3.
		Retry:           policy.RetryOptions{MaxRetries: -1, TryTimeout: callTimeout},
		Transport:       o.Transport,
		Telemetry:       policy.TelemetryOptions{ApplicationID: "jobq"},
		PerCallPolicies: []policy.Policy{textKeeper{}, plainQuotes{}},
	}
}

func (o Options) blobClient(a Account) (client *service.Client, err error) {
	options := service.ClientOptions{ClientOptions: o.clientOptions()}
	switch {
	case a.key != "":
		var key *azblob.SharedKeyCredential
		if key, err = azblob.NewSharedKeyCredential(a.name, a.key); err == nil {
			client, err = service.NewClientWithSharedKeyCredential(a.blob, key, &options)
		}
	case a.sas != "":
		client, err = service.NewClientWithNoCredential(a.blob+"/?"+a.sas, &options)
	default:
		if err := o.needsCredential(a); err != nil {
			return nil, err
		}
		client, err = service.NewClient(a.blob, o.Credential, &options)
	}
	return client, unusable(a, err)
}

func (o Options) queueClient(a Account) (client *azqueue.ServiceClient, err error) {
	options := azqueue.ClientOptions{ClientOptions: o.clientOptions()}
	switch {
	case a.key != "":
		var key *azqueue.SharedKeyCredential
		if key, err = azqueue.NewSharedKeyCredential(a.name, a.key); err == nil {
			client, err = azqueue.NewServiceClientWithSharedKeyCredential(a.queue, key, &options)
		}
	case a.sas != "":
		client, err = azqueue.NewServiceClientWithNoCredential(a.queue+"/?"+a.sas, &options)
	default:
		if err := o.needsCredential(a); err != nil {
			return nil, err
		}
		client, err = azqueue.NewServiceClient(a.queue, o.Credential, &options)
	}
	return client, unusable(a, err)
}

func (o Options) tableClient(a Account) (client *aztables.ServiceClient, err error) {
	options := aztables.ClientOptions{ClientOptions: o.clientOptions()}
	options.PerCallPolicies = append(options.PerCallPolicies, asciiBodies{})
	switch {
	case a.key != "":
		var key *aztables.SharedKeyCredential
		if key, err = aztables.NewSharedKeyCredential(a.name, a.key); err == nil {
			client, err = aztables.NewServiceClientWithSharedKey(a.table, key, &options)
		}
	case a.sas != "":
		client, err = aztables.NewServiceClientWithNoCredential(a.table+"/?"+a.sas, &options)
	default:
		if err := o.needsCredential(a); err != nil {
			return nil, err
		}
		client, err = aztables.NewServiceClient(a.table, o.Credential, &options)
	}
	return client, unusable(a, err)
}

func (o Options) needsCredential(a Account) error {
	if o.Credential != nil {
		return nil
	}
	return fault.Newf(fault.Invalid, "account %v has no connection string and there is no credential for it", a)
}

// unusable hides the cause: it may have the secret in its text.
func unusable(a Account, err error) error {
	if err == nil {
		return nil
	}
	return fault.Newf(fault.Invalid, "the addresses or the key of account %v cannot be used", a)
}
