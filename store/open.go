package store

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/local"
	"jobq/store/memory"
)

// The storages that this build serves.
const (
	// Local keeps everything in a directory of this machine.
	Local = "local"
	// Memory keeps everything in this process, for tests.
	Memory = "memory"
)

// Location is STORAGE/PREFIX: which service holds the data, and under which
// prefix.
type Location struct {
	Storage string
	Prefix  string
}

// ParseLocation reads STORAGE/PREFIX. The prefix is what follows the last slash.
// Fails with fault.Invalid.
func ParseLocation(text string) (Location, error) {
	at := strings.LastIndexByte(text, '/')
	if at <= 0 || at == len(text)-1 {
		return Location{}, fault.Newf(fault.Invalid, "%q is not of the form STORAGE/PREFIX, as in %s/default", text, Local)
	}
	return Location{Storage: text[:at], Prefix: text[at+1:]}, nil
}

// String returns STORAGE/PREFIX.
func (l Location) String() string { return l.Storage + "/" + l.Prefix }

// Options is what drivers need besides the location.
type Options struct {
	// Home is the directory of the local store; see DefaultHome.
	Home string
	// Kind says to people what this process is: worker, coordinator, run.
	Kind string
	// Logger hears what a driver has to say. Nil is silent.
	Logger *slog.Logger

	// Queues and Blobs move queues and outputs of an Azure prefix elsewhere:
	// sb://NAMESPACE or an account, and ACCOUNT/CONTAINER. Empty leaves them in
	// the account of the prefix.
	Queues, Blobs string
	// HTTPPool is the size of the connection pool that all Azure clients share.
	HTTPPool int
	// LookOnly opens a prefix without creating what is missing, and a local one that
	// cannot be written to look at it.
	LookOnly bool
	// Getenv reads secrets and the ports of an emulator; nil means os.Getenv.
	Getenv func(string) string
}

func (o Options) getenv() func(string) string {
	if o.Getenv != nil {
		return o.Getenv
	}
	return os.Getenv
}

// newCredential returns the one credential of this process. It asks for nothing
// until it is used.
func newCredential() (azcore.TokenCredential, error) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fault.Wrap(fault.Denied, err, "no way to sign in to Azure is set up")
	}
	return credential, nil
}

// Open opens the store at l. The caller closes it.
//
// A storage that is neither local nor memory is the name of an Azure Storage
// account; devstoreaccount1 stands for Azurite. Fails as the driver says.
func Open(ctx context.Context, l Location, o Options) (*port.Store, error) {
	switch l.Storage {
	case Local:
		s, err := local.Open(ctx, local.Options{Home: o.Home, Prefix: l.Prefix, Kind: o.Kind, Logger: o.Logger, LookOnly: o.LookOnly})
		if err != nil {
			return nil, err
		}
		return s.Port(), nil
	case Memory:
		return memory.New(memory.Options{ProcessIdentity: true}).Port(), nil
	default:
		return openAzure(ctx, l, o)
	}
}

// DefaultHome returns the directory of the local store where the user names
// none: $XDG_DATA_HOME/jobq, else ~/.local/share/jobq. A user's JOBQ_HOME wins
// over both. getenv is os.Getenv outside of tests.
//
// Fails with fault.Invalid where not even HOME is set.
func DefaultHome(getenv func(string) string) (string, error) {
	if home := getenv("JOBQ_HOME"); home != "" {
		return home, nil
	}
	// The XDG specification has relative paths ignored.
	if data := getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "jobq"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "jobq"), nil
	}
	return "", fault.New(fault.Invalid, "neither JOBQ_HOME nor HOME is set, so there is no place for the local store").
		WithRemedy("set JOBQ_HOME to a directory on a local disk")
}
