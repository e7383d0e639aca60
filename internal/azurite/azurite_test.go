package azurite_test

import (
	"net"
	"net/url"
	"os"
	"testing"

	"jobq/internal/azurite"
)

var emulator azurite.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	emulator.Close()
	os.Exit(code)
}

func TestTheServerListensOnThreePortsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := emulator.Server(t)
	seen := map[string]bool{}
	for _, address := range []string{s.Blob, s.Queue, s.Table} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatalf("%s is not reached: %v", address, err)
		}
		_ = conn.Close()
		if seen[u.Host] {
			t.Errorf("two services share %s", u.Host)
		}
		seen[u.Host] = true
	}
	if len(s.Env()) != 3 {
		t.Errorf("Env() = %q, want three ports", s.Env())
	}
}

func TestEachAccountIsGivenOnce(t *testing.T) {
	t.Parallel()
	first, second := emulator.Account(t), emulator.Account(t)
	if first == second {
		t.Errorf("Account() gave %q twice", first)
	}
}
