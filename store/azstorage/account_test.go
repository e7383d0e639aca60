package azstorage_test

import (
	"strings"
	"testing"

	"jobq/core/fault"
	"jobq/store/azstorage"
)

func TestAccountsAreNamedOrDescribed(t *testing.T) {
	t.Parallel()
	ports := func(name string) string { return map[string]string{"QUEUE_PORT": "11001"}[name] }
	for name, c := range map[string]struct {
		text, want string
		anonymous  bool
	}{
		"a bare name":                       {"myaccount", "myaccount", true},
		"the emulator":                      {"devstoreaccount1", "devstoreaccount1", false},
		"the emulator as SDKs write it":     {"UseDevelopmentStorage=true", "devstoreaccount1", false},
		"a connection string":               {scriptedAccount, "scripted", false},
		"a signature with endpoints":        {"BlobEndpoint=https://x1.blob.core.windows.net/;QueueEndpoint=https://x1.queue.core.windows.net/;TableEndpoint=https://x1.table.core.windows.net/;SharedAccessSignature=?sv=1&sig=s%3D", "x1", false},
		"a key with padding and extra ends": {"AccountName=abc;AccountKey=YWI=;;EndpointSuffix=core.chinacloudapi.cn; ", "abc", false},
	} {
		a, err := azstorage.ParseAccount(c.text, ports)
		if err != nil {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if a.Name() != c.want || a.Anonymous() != c.anonymous {
			t.Errorf("%s: account %q, anonymous %v, want %q, %v", name, a.Name(), a.Anonymous(), c.want, c.anonymous)
		}
	}
}

func TestAccountsThatCannotBeAreRefusedWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	bad := func(name string) string { return map[string]string{"BLOB_PORT": "ten"}[name] }
	for name, text := range map[string]string{
		"empty": "", "upper case": "MyAccount", "an address": "https://myaccount.blob.core.windows.net", "two letters": "ab",
		"too long": strings.Repeat("a", 25), "a hyphen": "my-account", "no key": "AccountName=abc;SecretWord=hush",
		"a key that is no base64": "AccountName=abc;AccountKey=hush!", "a bad name": "AccountName=A_B;AccountKey=aHVzaA==",
		"no account": "AccountKey=aHVzaA==", "an endpoint that is no address": "AccountName=abc;AccountKey=aHVzaA==;BlobEndpoint=hush",
		"an emulator at no port": "devstoreaccount1",
	} {
		_, err := azstorage.ParseAccount(text, bad)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: error = %v, want invalid", name, err)
		} else if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "aHVzaA") {
			t.Errorf("%s: the error repeats a secret: %v", name, err)
		}
	}
}

func TestNamesAreCheckedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]azstorage.Options{
		"a prefix of one letter":        {Prefix: "D"},
		"a prefix that starts with 1":   {Prefix: "1Demo"},
		"a prefix with a hyphen":        {Prefix: "My-Demo"},
		"a prefix of 36 letters":        {Prefix: strings.Repeat("d", 36)},
		"a container in upper case":     {Prefix: "Demo", Container: "Outputs"},
		"a container with two hyphens":  {Prefix: "Demo", Container: "my--outputs"},
		"an account without container":  {Prefix: "Demo", Blobs: new(parse(t, "other"))},
		"an account without credential": {Prefix: "Demo", Queues: new(parse(t, "other"))},
	} {
		o.Account = parse(t, scriptedAccount)
		o.Create = true
		if _, err := azstorage.Open(t.Context(), o); !fault.Is(err, fault.Invalid) {
			t.Errorf("Open with %s = error %v, want invalid", name, err)
		}
	}
	// C61: queue names that the service would refuse one way or another.
	s, asked := scripted(t, answer{status: 400})
	for _, name := range []string{"GPU_A100", "a--b", "-a", "a-", "ab", strings.Repeat("q", 64), "", "gpu.64", "größe", strings.Repeat("q", 57)} {
		if err := s.Queues.Ensure(t.Context(), name); !fault.Is(err, fault.Invalid) && len(name) != 57 {
			t.Errorf("Ensure(%q) = error %v, want invalid", name, err)
		}
	}
	if n := asked.Load(); n > 1 {
		t.Errorf("the service was asked %d times about names that break a rule", n)
	}
}
