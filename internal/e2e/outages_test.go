package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"jobq/core/port"
	"jobq/internal/azurite"
	"jobq/store/azstorage"
)

// TestAContainerThatIsDeletedAndBack deletes the container with the states, and
// brings it back with what was in it, as an account with soft delete can.
func TestAContainerThatIsDeletedAndBack(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "Deleted", "")
	s.begin()
	c, err := container.NewClientFromConnectionString(s.server.Connection(), "deleted-workflows", nil)
	if err != nil {
		t.Fatal(err)
	}
	saved := s.rest(c)
	if _, err := c.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.openGate()
	s.hear("deleted-workflows", "is missing in account devstoreaccount1")
	s.told([]string{"status", "storm"}, `container "deleted-workflows" is missing in account devstoreaccount1`)
	// The report of the task at the gate is kept, however often it is met.
	<-time.After(10 * time.Second)
	if n := s.count("deleted-workflow-completions-poison"); n != 0 {
		t.Errorf("%d messages are in the poison queue, want none", n)
	}
	if n := s.count("deleted-workflow-completions"); n == 0 {
		t.Error("the inbox is empty, want the report kept")
	}
	s.restore(c, saved)
	s.end()
}

// TestATableThatIsDeletedAndBack deletes the index. Workers wait with the next
// start, since a cancel request could stand in it. A submit makes the table again.
func TestATableThatIsDeletedAndBack(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "Table", "")
	s.begin()
	tables, err := aztables.NewServiceClientFromConnectionString(s.server.Connection(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tables.DeleteTable(t.Context(), "TableWorkflowsIndex", nil); err != nil {
		t.Fatal(err)
	}
	s.openGate()
	s.hear("table TableWorkflowsIndex is missing in account devstoreaccount1")
	missing := []string{"table TableWorkflowsIndex is missing in account devstoreaccount1", "create it empty"}
	s.told([]string{"list"}, missing...)
	r := s.mustRun(0, "status", "storm")
	for _, text := range append(missing, "name      storm", "status    running") {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("status without the index does not say %q:\n%s%s", text, r.stdout, r.stderr)
		}
	}
	other := s.write("other.yaml", "name: other\ntasks:\n- {name: a, queue: storm, kwargs: {cmd: \"true\"}}\n")
	s.mustRun(0, "submit", other, "--id", "other", "--quiet")
	s.end()
	if got := s.await("other", patience); got.Status != "completed" {
		t.Errorf("other is %s, want completed", got.Status)
	}
	s.until("both workflows in the list", func() bool {
		out := s.mustRun(0, "list", "--status", "completed").stdout
		return strings.Contains(out, "storm") && strings.Contains(out, "other")
	})
}

// TestQueuesThatAreCleared loses the message of a task that was sent, and the
// report of one that ran. The running repair finds both by their records.
func TestQueuesThatAreCleared(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "Cleared", "")
	s.env = append(s.env, "JOBQ_COORDINATOR_RUNNING_REPAIR_S=60", "JOBQ_COORDINATOR_READY_SWEEP_INTERVAL_S=1", "JOBQ_COORDINATOR_READY_REPAIR_THRESHOLD_S=5")
	s.mustRun(0, "submit", s.write("sent.yaml", "name: sent\ntasks:\n- {name: a, queue: first, kwargs: {cmd: \"echo a >>ran\"}}\n"+
		"- {name: b, queue: second, depends_on: [a], kwargs: {cmd: \"echo b >>ran\"}}\n"), "--id", "sent", "--quiet")
	s.mustRun(0, "submit", s.write("reported.yaml", "name: reported\ntasks:\n- {name: c, queue: first, kwargs: {cmd: \"echo c >>ran\"}}\n"+
		"- {name: d, queue: first, depends_on: [c], kwargs: {cmd: \"echo d-began >>began; while [ ! -e gate ]; do sleep 0.1; done; echo d >>ran\"}}\n"), "--id", "reported", "--quiet")
	stop := s.start("coordinator")
	s.start("worker", "-n", "2", "--max-idle-backoff", "0.5", "devstoreaccount1/first")
	s.until("the task behind the gate", func() bool { return len(s.lines("began")) == 1 })
	s.until("the message of b", func() bool { return s.count("second") == 1 })
	s.until("the saved send of both", func() bool {
		return s.status("sent").Counts["running"] == 1 && s.status("reported").Counts["running"] == 1
	})
	stop()
	s.openGate()
	s.until("the report of d", func() bool { return s.count("cleared-workflow-completions") == 1 })
	for _, q := range []string{"second", "cleared-workflow-completions"} {
		if _, err := s.queue(q).Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.start("worker", "--max-idle-backoff", "0.5", "devstoreaccount1/second")
	s.start("coordinator")
	for _, id := range []string{"sent", "reported"} {
		if got := s.await(id, patience); got.Status != "completed" {
			t.Errorf("%s is %s with %v, want completed; the programs said\n%s", id, got.Status, got.Counts, s.last())
		}
	}
	runs := map[string]int{}
	for _, name := range s.lines("ran") {
		runs[name]++
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if runs[name] != 1 {
			t.Errorf("%s ran %d times, want once", name, runs[name])
		}
	}
	s.hear("repair")
}

// TestADiskThatIsFull has every write of the emulator to its disk fail for a while.
func TestADiskThatIsFull(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "Full", t.TempDir())
	s.begin()
	if err := s.server.FillDisk(); err != nil {
		t.Fatal(err)
	}
	s.openGate()
	s.hear("account devstoreaccount1: the service answered 500")
	other := s.write("other.yaml", "name: other\ntasks:\n- {name: a, queue: storm, kwargs: {cmd: \"true\"}}\n")
	s.told([]string{"submit", other, "--id", "other"}, "account devstoreaccount1: the service answered 500", "the disk of the emulator")
	<-time.After(10 * time.Second)
	if err := s.server.FreeDisk(); err != nil {
		t.Fatal(err)
	}
	s.end()
	s.mustRun(0, "submit", other, "--id", "other", "--quiet")
	if got := s.await("other", patience); got.Status != "completed" {
		t.Errorf("other is %s, want completed", got.Status)
	}
}

// TestRightsThatAreTakenForAWhile has the account refuse its key, as after a change
// of keys or roles, and accept it again.
func TestRightsThatAreTakenForAWhile(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "Rights", "")
	var denied atomic.Bool
	s.env = append(s.env, denying(t, s.server, &denied)...)
	s.begin()
	denied.Store(true)
	s.openGate()
	s.hear("account devstoreaccount1", "AuthenticationFailed")
	s.told([]string{"list"}, "account devstoreaccount1", "AuthenticationFailed", "role")
	<-time.After(10 * time.Second)
	denied.Store(false)
	s.end()
}

// denying puts a gate before the emulator and returns the variables by which
// programs find it.
func denying(t *testing.T, server *azurite.Server, denied *atomic.Bool) (env []string) {
	t.Helper()
	for name, address := range map[string]string{"BLOB_PORT": server.Blob, "QUEUE_PORT": server.Queue, "TABLE_PORT": server.Table} {
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !denied.Load() {
				proxy.ServeHTTP(w, r)
				return
			}
			w.Header().Set("x-ms-error-code", "AuthenticationFailed")
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(gate.Close)
		env = append(env, name+"="+gate.URL[strings.LastIndexByte(gate.URL, ':')+1:])
	}
	return env
}

// queue opens a queue of the account.
func (s *storm) queue(name string) port.Queue {
	s.t.Helper()
	account, err := azstorage.ParseAccount(azstorage.EmulatorAccount, s.getenv)
	if err != nil {
		s.t.Fatal(err)
	}
	queues, err := azstorage.OpenQueues(azstorage.Options{Account: account})
	if err != nil {
		s.t.Fatal(err)
	}
	return queues.Queue(name)
}

// count is how many messages a queue holds, 0 where it does not exist.
func (s *storm) count(queue string) int {
	n, err := s.queue(queue).Count(s.t.Context())
	if err != nil {
		return 0
	}
	return n
}

// kept is a blob outside its container.
type kept struct {
	kind     blob.BlobType
	body     []byte
	metadata map[string]*string
	tag      string
}

// rest waits until nothing in the container changes any more, and returns it.
func (s *storm) rest(c *container.Client) map[string]kept {
	s.t.Helper()
	const quiet = 8 * time.Second // the last trailing save is 5 s after a send
	last := s.read(c)
	for since := time.Now(); time.Since(since) < quiet; {
		<-time.After(500 * time.Millisecond)
		now := s.read(c)
		for name, b := range now {
			if b.tag != last[name].tag && !strings.HasSuffix(name, ".lock") {
				since = time.Now()
			}
		}
		last = now
	}
	return last
}

func (s *storm) read(c *container.Client) map[string]kept {
	s.t.Helper()
	all := map[string]kept{}
	for pager := c.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			got, err := c.NewBlobClient(*item.Name).DownloadStream(s.t.Context(), nil)
			if err != nil {
				s.t.Fatal(err)
			}
			body, err := io.ReadAll(got.Body)
			if err != nil {
				s.t.Fatal(err)
			}
			all[*item.Name] = kept{*got.BlobType, body, got.Metadata, string(*got.ETag)}
		}
	}
	return all
}

// restore makes the container again with all in it.
func (s *storm) restore(c *container.Client, all map[string]kept) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	if _, err := c.Create(ctx, nil); err != nil {
		s.t.Fatal(err)
	}
	for name, b := range all {
		body := streaming.NopCloser(strings.NewReader(string(b.body)))
		var err error
		if b.kind == blob.BlobTypeAppendBlob {
			if _, err = c.NewAppendBlobClient(name).Create(ctx, &appendblob.CreateOptions{Metadata: b.metadata}); err == nil && len(b.body) > 0 {
				_, err = c.NewAppendBlobClient(name).AppendBlock(ctx, body, nil)
			}
		} else {
			_, err = c.NewBlockBlobClient(name).Upload(ctx, body, &blockblob.UploadOptions{Metadata: b.metadata})
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}
