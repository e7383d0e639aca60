package azbus

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"jobq/core/fault"
)

// dialer returns what opens the AMQP connection to a namespace, which is a host
// with or without a port.
func dialer(namespace string, emulator bool) func(context.Context) (net.Conn, error) {
	u := url.URL{Host: namespace}
	address := func(port string) string {
		if u.Port() != "" {
			port = u.Port()
		}
		return net.JoinHostPort(u.Hostname(), port)
	}
	return func(ctx context.Context) (net.Conn, error) {
		if emulator {
			return new(net.Dialer).DialContext(ctx, "tcp", address("5672"))
		}
		return new(tls.Dialer).DialContext(ctx, "tcp", address("5671"))
	}
}

// dial opens the network connection of c, once.
//
// Whoever dials again has lost it: a call, or the client itself when it renews a
// token, which it would repeat without a pause for as long as the network is
// away. Links and tokens were of the first connection, so c is given up, and the
// next call dials for a new one.
func (b *Bus) dial(ctx context.Context, c *connection) (net.Conn, error) {
	if c.dialled.Load() {
		b.discard(c)
		return nil, lostError{fault.Newf(fault.Unavailable, "the connection to %s was lost", b.o.Namespace)}
	}
	network, err := b.o.Dial(ctx)
	if err == nil {
		c.dialled.Store(true)
	}
	return network, err
}

// lostError ends the renewal of tokens on a connection.
type lostError struct{ error }

// NonRetriable tells the client not to repeat what led to the error.
func (lostError) NonRetriable() {}

func (e lostError) Unwrap() error { return e.error }

// leastFailure is how long it takes at least to fail for a token.
const leastFailure = time.Second

// patient is a credential that fails slowly: the client repeats the renewal of a
// token without a pause, unless it is told not to.
type patient struct{ azcore.TokenCredential }

func (p patient) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	pause, stop := context.WithTimeout(ctx, leastFailure)
	defer stop()
	token, err := p.TokenCredential.GetToken(ctx, o)
	if err != nil && !final(err) {
		<-pause.Done()
	}
	return token, err
}

// final reports an error that the client does not repeat. It is how azidentity
// says that no token can be had.
func final(err error) bool {
	_, ok := errors.AsType[interface {
		error
		NonRetriable()
	}](err)
	return ok
}
