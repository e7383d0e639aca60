package store_test

import (
	"path/filepath"
	"strings"
	"testing"

	"jobq/core/fault"
	"jobq/store"
)

func TestParseLocation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]store.Location{
		"local/default":        {Storage: "local", Prefix: "default"},
		"myaccount/MyProject":  {Storage: "myaccount", Prefix: "MyProject"},
		"sb://namespace/Trial": {Storage: "sb://namespace", Prefix: "Trial"},
	} {
		got, err := store.ParseLocation(text)
		if err != nil || got != want {
			t.Errorf("ParseLocation(%q) = %v, error %v, want %v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("ParseLocation(%q).String() = %q", text, got)
		}
	}
	for _, text := range []string{"", "local", "/default", "local/", "/"} {
		if got, err := store.ParseLocation(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseLocation(%q) = %v, error %v, want fault invalid", text, got, err)
		}
	}
}

func TestOpenServesWhatItSays(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{store.Local, store.Memory} {
		s, err := store.Open(t.Context(), store.Location{Storage: storage, Prefix: "main"}, store.Options{Home: filepath.Join(t.TempDir(), "home")})
		if err != nil {
			t.Errorf("Open(%s) = error %v", storage, err)
			continue
		}
		if _, err := s.States.Create(t.Context(), "w", []byte("state")); err != nil {
			t.Errorf("Create in %s = error %v", storage, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close of %s = error %v", storage, err)
		}
	}
}

func TestOpenRefusesWhatNoServiceWouldTake(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for name, tc := range map[string]struct {
		location store.Location
		options  store.Options
		want     string
	}{
		"an account with a hyphen":    {store.Location{Storage: "my-account", Prefix: "Trial"}, store.Options{}, "my-account"},
		"a prefix that starts with 1": {store.Location{Storage: "myaccount", Prefix: "1st"}, store.Options{}, "1st"},
		"blobs without a container":   {store.Location{Storage: "myaccount", Prefix: "Trial"}, store.Options{Blobs: "other"}, "ACCOUNT/CONTAINER"},
		"blobs as an address":         {store.Location{Storage: "myaccount", Prefix: "Trial"}, store.Options{Blobs: "https://x/y"}, "ACCOUNT/CONTAINER"},
		"a storage with a secret":     {store.Location{Storage: "AccountName=myaccount;AccountKey=aHVudGVyMg==", Prefix: "Trial"}, store.Options{}, "STORAGE/PREFIX looks like a connection string"},
		"queues with a secret":        {store.Location{Storage: "myaccount", Prefix: "Trial"}, store.Options{Queues: "AccountName=myaccount;AccountKey=aHVudGVyMg=="}, "JOBQ_WORKFLOW_QUEUES looks like a connection string"},
		"blobs with a secret":         {store.Location{Storage: "myaccount", Prefix: "Trial"}, store.Options{Blobs: "AccountKey=hunter2/x"}, "JOBQ_WORKFLOW_BLOBS looks like a connection string"},
		"a namespace with a secret":   {store.Location{Storage: "myaccount", Prefix: "Trial"}, store.Options{Queues: "sb://Endpoint=sb://x;SharedAccessKey=hunter2"}, "JOBQ_WORKFLOW_QUEUES looks like a connection string"},
		"a namespace with a path":     {store.Location{Storage: "myaccount", Prefix: "Trial"}, store.Options{Queues: "sb://ns/q"}, "sb://NAMESPACE"},
	} {
		tc.options.Getenv = none
		_, err := store.Open(t.Context(), tc.location, tc.options)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: Open = %v, want fault invalid that names %s", name, err, tc.want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg")) {
			t.Errorf("%s: the error repeats a secret: %v", name, err)
		}
	}
}

func TestDefaultHome(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"JOBQ_HOME wins":                {map[string]string{"JOBQ_HOME": "data", "XDG_DATA_HOME": "/xdg", "HOME": "/home/me"}, "data"},
		"the data directory comes next": {map[string]string{"XDG_DATA_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/jobq"},
		"a relative one is ignored":     {map[string]string{"XDG_DATA_HOME": "xdg", "HOME": "/home/me"}, "/home/me/.local/share/jobq"},
		"the home directory is last":    {map[string]string{"HOME": "/home/me"}, "/home/me/.local/share/jobq"},
	} {
		got, err := store.DefaultHome(func(key string) string { return tc.env[key] })
		if err != nil || got != tc.want {
			t.Errorf("%s: DefaultHome = %q, error %v, want %q", name, got, err, tc.want)
		}
	}
	if got, err := store.DefaultHome(func(string) string { return "" }); !fault.Is(err, fault.Invalid) {
		t.Errorf("DefaultHome of an empty environment = %q, error %v, want fault invalid", got, err)
	}
}
