package azstorage

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"jobq/core/fault"
)

// EmulatorAccount is the account name that stands for Azurite.
const EmulatorAccount = "devstoreaccount1"

// emulatorKey is the key that Azurite gives that account, the same everywhere.
const emulatorKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// Account is a storage account: where its services are, and how to prove the
// right to use them. Printed by whatever verb, it shows its name alone.
type Account struct {
	name               string
	blob, queue, table string
	key                string
	sas                string
}

// Name returns the name of the account, which is no secret.
func (a Account) Name() string { return a.name }

// Anonymous reports whether the account has no secret of its own, so that a
// credential is needed.
func (a Account) Anonymous() bool { return a.key == "" && a.sas == "" }

// Format prints the name, whatever the verb: fmt reads unexported fields too.
func (a Account) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, a.name) }

// LogValue returns the name.
func (a Account) LogValue() slog.Value { return slog.StringValue(a.name) }

// ParseAccount reads the name of an account, or a connection string, which must
// come from the environment and never from a file or a flag. The name
// devstoreaccount1 stands for Azurite on this machine at the ports of BLOB_PORT
// (10000), QUEUE_PORT (10001) and TABLE_PORT (10002). getenv is os.Getenv
// outside of tests.
//
// Fails with fault.Invalid; the error never repeats a connection string.
func ParseAccount(text string, getenv func(string) string) (Account, error) {
	switch {
	case text == EmulatorAccount:
		return emulator(getenv)
	case strings.Contains(text, "="):
		return parseConnectionString(text, getenv)
	}
	if err := checkAccountName(text); err != nil {
		return Account{}, err
	}
	return accountAt(text, "https", "core.windows.net"), nil
}

func accountAt(name, scheme, suffix string) Account {
	at := func(service string) string { return scheme + "://" + name + "." + service + "." + suffix }
	return Account{name: name, blob: at("blob"), queue: at("queue"), table: at("table")}
}

func emulator(getenv func(string) string) (Account, error) {
	a := Account{name: EmulatorAccount, key: emulatorKey}
	for _, s := range []struct {
		url            *string
		variable, port string
	}{{&a.blob, "BLOB_PORT", "10000"}, {&a.queue, "QUEUE_PORT", "10001"}, {&a.table, "TABLE_PORT", "10002"}} {
		port := s.port
		if set := getenv(s.variable); set != "" {
			port = set
		}
		if strings.Trim(port, "0123456789") != "" || len(port) > 5 {
			return Account{}, fault.Newf(fault.Invalid, "%s is %q, which is not the number of a port", s.variable, port)
		}
		*s.url = "http://127.0.0.1:" + port + "/" + EmulatorAccount
	}
	return a, nil
}

func parseConnectionString(text string, getenv func(string) string) (Account, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			parts[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	if parts["UseDevelopmentStorage"] == "true" {
		return emulator(getenv)
	}
	a := Account{name: parts["AccountName"]}
	if a.name != "" {
		if err := checkAccountName(a.name); err != nil {
			return Account{}, err
		}
		a = accountAt(a.name, or(parts["DefaultEndpointsProtocol"], "https"), or(parts["EndpointSuffix"], "core.windows.net"))
	}
	a.key, a.sas = parts["AccountKey"], strings.TrimPrefix(parts["SharedAccessSignature"], "?")
	for _, s := range []struct {
		url  *string
		part string
	}{{&a.blob, "BlobEndpoint"}, {&a.queue, "QueueEndpoint"}, {&a.table, "TableEndpoint"}} {
		*s.url = strings.TrimSuffix(or(parts[s.part], *s.url), "/")
		if u, err := url.Parse(*s.url); err != nil || u.Host == "" {
			return Account{}, invalidConnection("it has neither AccountName nor a " + s.part + " that is an address")
		}
	}
	if a.name == "" {
		u, _ := url.Parse(a.blob)
		a.name, _, _ = strings.Cut(u.Hostname(), ".")
	}
	if a.key != "" {
		if _, err := base64.StdEncoding.DecodeString(a.key); err != nil {
			return Account{}, invalidConnection("its AccountKey is not base64")
		}
	} else if a.sas == "" {
		return Account{}, invalidConnection("it has neither AccountKey nor SharedAccessSignature")
	}
	return a, nil
}

func invalidConnection(why string) error {
	return fault.New(fault.Invalid, "the connection string of the storage account cannot be used: "+why).
		WithRemedy("copy it again from the portal, or name the account alone and sign in")
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
