package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobq/internal/azurite"
)

// outage is how long the account cannot be reached.
const outage = 45 * time.Second

// TestAnAccountThatIsAwayForAWhile stops the whole storage account under running
// coordinator and workers, in the middle of a workflow. Everything goes on by
// itself when it is back, and a command says meanwhile what is wrong.
func TestAnAccountThatIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	var own azurite.Shared
	t.Cleanup(own.Close)
	server := own.Server(t)
	h := newHome(t)
	h.env = append(server.Env(), "JOBQ_WORKFLOW_PREFIX=devstoreaccount1/Outage")
	var b strings.Builder
	b.WriteString("name: outage\ndefault_queue: outage\ntasks:\n- {name: t0, kwargs: {cmd: \"sleep 0.2; echo t0 >>ran\"}}\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "- {name: t%d, depends_on: [t%d], kwargs: {cmd: \"sleep 0.2; echo t%d >>ran\"}}\n", i, i-1, i)
	}
	h.mustRun(0, "submit", h.write("outage.yaml", b.String()), "--id", "away", "--quiet")
	h.serve("devstoreaccount1/outage")
	for begun := time.Now(); len(h.lines("ran")) < 3; {
		if time.Since(begun) > patience {
			t.Fatal("the workflow does not begin")
		}
		<-time.After(100 * time.Millisecond)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	<-time.After(outage)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	s := h.await("away", patience)
	if s.Status != "completed" || s.Counts["completed"] != 30 {
		t.Errorf("away is %s with %v, want 30 completed", s.Status, s.Counts)
	}
	runs := map[string]int{}
	for _, name := range h.lines("ran") {
		runs[name]++
	}
	if len(runs) != 30 {
		t.Errorf("%d tasks ran, want 30", len(runs))
	}
	t.Logf("%d runs of 30 tasks", len(h.lines("ran")))
}

// TestWrongCredentialsAreNamed shows what a person reads who has the wrong key.
func TestWrongCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	h := onAzurite(t, "Wrong")
	server := emulator.Server(t)
	h.env = append(h.env, "JOBQ_WORKFLOW_PREFIX=test0000/Wrong", "JOBQ_CONNECTION_STRING=AccountName=test0000;AccountKey=d3Jvbmc=;BlobEndpoint="+
		server.Blob+"/test0000;QueueEndpoint="+server.Queue+"/test0000;TableEndpoint="+server.Table+"/test0000")
	r := h.run("list")
	if r.code == 0 {
		t.Fatalf("list with a wrong key = exit 0\n%s", r.stdout)
	}
	for _, want := range []string{"test0000", "next: "} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("stderr does not say %q:\n%s", want, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "d3Jvbmc") {
		t.Errorf("stderr repeats the key:\n%s", r.stderr)
	}
}
