package azstorage_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/azstorage"
)

const goodTag = port.Tag(`"0x8DC"`)

var key = port.RecordKey{Workflow: "w", Task: "a", Attempt: 1}

// C19 and C20: conflicts come with one status and many codes, or none.
func TestAConflictIsKnownByItsStatusWhateverItsCode(t *testing.T) {
	t.Parallel()
	calls := map[string]struct {
		call func(context.Context, *port.Store) error
		want fault.Code
	}{
		"save": {func(ctx context.Context, s *port.Store) error {
			_, err := s.States.Save(ctx, "w", []byte("x"), goodTag)
			return err
		}, fault.Conflict},
		"change": {func(ctx context.Context, s *port.Store) error {
			_, err := s.Records.Change(ctx, key, port.Record{}, goodTag)
			return err
		}, fault.Conflict},
		"project": {func(ctx context.Context, s *port.Store) error {
			_, err := s.Index.SetCancel(ctx, "w", port.CancelRequest{}, `W/"x"`)
			return err
		}, fault.Conflict},
		"create": {func(ctx context.Context, s *port.Store) error {
			_, err := s.States.Create(ctx, "w", []byte("x"))
			return err
		}, fault.Exists},
		"put": {func(ctx context.Context, s *port.Store) error { return s.Outputs.Put(ctx, "w/a.json", nil) }, fault.Exists},
	}
	for name, c := range calls {
		for _, a := range []answer{
			{status: 412, code: "ConditionNotMet"}, {status: 412, code: "TargetConditionNotMet"}, {status: 412, code: "UpdateConditionNotSatisfied"},
			{status: 412}, {status: 412, body: "<html>Precondition Failed</html>"},
			{status: 409, code: "BlobAlreadyExists"}, {status: 409, code: "EntityAlreadyExists"}, {status: 409}, {status: 409, code: "SomethingNew"},
		} {
			t.Run(fmt.Sprintf("%s answered %d %s", name, a.status, a.code), func(t *testing.T) {
				t.Parallel()
				s, asked := scripted(t, a)
				if err := c.call(t.Context(), s); !fault.Is(err, c.want) {
					t.Errorf("error = %v (%v), want %v", err, fault.CodeOf(err), c.want)
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("the service was asked %d times, want once", n)
				}
			})
		}
	}
}

func TestAnswersHaveCodes(t *testing.T) {
	t.Parallel()
	load := func(ctx context.Context, s *port.Store) error {
		_, err := s.States.Load(ctx, "w", goodTag)
		return err
	}
	receive := func(ctx context.Context, s *port.Store) error {
		_, err := s.Queues.Queue("cpu").Receive(ctx, port.ReceiveOptions{Max: 1, Lock: time.Minute})
		return err
	}
	send := func(ctx context.Context, s *port.Store) error {
		return errors.Join(s.Queues.Queue("cpu").Send(ctx, []port.Message{{Body: []byte("x")}})...)
	}
	row := func(ctx context.Context, s *port.Store) error {
		_, err := s.Index.Get(ctx, "w")
		return err
	}
	save := func(ctx context.Context, s *port.Store) error {
		_, err := s.States.Save(ctx, "w", nil, goodTag)
		return err
	}
	for name, c := range map[string]struct {
		call    func(context.Context, *port.Store) error
		answers []answer
		want    fault.Code
		asked   int64
		text    string
	}{
		"a blob that is absent":                     {load, []answer{{status: 404, code: "BlobNotFound"}}, fault.NotFound, 1, ""},
		"a container that is absent":                {load, []answer{{status: 404, code: "ContainerNotFound"}}, fault.Unavailable, 1, `container "demo-workflows" is missing in account scripted`},
		"a container that is being deleted":         {save, []answer{{status: 409, code: "ContainerBeingDeleted"}}, fault.Unavailable, 1, "demo-workflows"},
		"404 without a code, container there":       {load, []answer{{status: 404}, {status: 200}}, fault.NotFound, 2, ""},
		"404 without a code, container absent":      {load, []answer{{status: 404}, {status: 404}}, fault.Unavailable, 2, "demo-workflows"},
		"404 without a code, container unreachable": {load, []answer{{status: 404}, {status: 503}}, fault.Unavailable, 2, ""},
		"a state that is gone when it is saved":     {save, []answer{{status: 404, code: "BlobNotFound"}}, fault.Conflict, 1, ""},
		"a container that is gone at a save":        {save, []answer{{status: 404, code: "ContainerNotFound"}}, fault.Unavailable, 1, "demo-workflows"},
		"a row that is absent":                      {row, []answer{{status: 404, code: "ResourceNotFound"}}, fault.NotFound, 1, ""},
		"a table that is absent":                    {row, []answer{{status: 404, code: "TableNotFound"}}, fault.Unavailable, 1, "table DemoWorkflowsIndex is missing in account scripted"},
		"a queue that is absent":                    {receive, []answer{{status: 404, code: "QueueNotFound"}}, fault.NotFound, 1, "queue cpu does not exist in account scripted"},
		"a busy service":                            {load, []answer{{status: 503, code: "ServerBusy"}}, fault.Throttled, 1, ""},
		"a gateway without an answer":               {save, []answer{{status: 503}}, fault.Unavailable, 1, ""},
		"a service that took too long":              {save, []answer{{status: 500, code: "OperationTimedOut"}}, fault.Unavailable, 1, ""},
		"too many requests":                         {receive, []answer{{status: 429}}, fault.Throttled, 1, ""},
		"a wrong key":                               {load, []answer{{status: 403, code: "AuthenticationFailed"}}, fault.Denied, 1, ""},
		"a missing role":                            {receive, []answer{{status: 403, code: "AuthorizationPermissionMismatch"}}, fault.Denied, 1, ""},
		"a body that is too large":                  {save, []answer{{status: 413}}, fault.TooLarge, 1, ""},
		"a message that is too large":               {send, []answer{{status: 400, code: "MessageTooLarge"}}, fault.TooLarge, 1, ""},
		"a message that is too large by 413":        {send, []answer{{status: 413, code: "MessageTooLarge"}}, fault.TooLarge, 1, ""},
		"a request that is too large":               {send, []answer{{status: 413, code: "RequestBodyTooLarge"}}, fault.TooLarge, 1, ""},
		"an answer nobody expected":                 {row, []answer{{status: 418}}, fault.Internal, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, asked := scripted(t, c.answers...)
			err := c.call(t.Context(), s)
			if !fault.Is(err, c.want) {
				t.Fatalf("error = %v (%v), want %v", err, fault.CodeOf(err), c.want)
			}
			if n := asked.Load(); n != c.asked {
				t.Errorf("the service was asked %d times, want %d", n, c.asked)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error = %q, want it to say %q", err, c.text)
			}
		})
	}
}

// queueCalls are calls on the queue cpu: those on it as a whole, and those on one
// message of it.
func queueCalls() map[string]func(context.Context, port.Queues) error {
	d := port.Delivery{ID: "1", Receipt: "receipt", Body: []byte("x")}
	on := func(call func(context.Context, port.Queue) error) func(context.Context, port.Queues) error {
		return func(ctx context.Context, v port.Queues) error { return call(ctx, v.Queue("cpu")) }
	}
	return map[string]func(context.Context, port.Queues) error{
		"Ensure": func(ctx context.Context, v port.Queues) error { return v.Ensure(ctx, "cpu") },
		"Send": on(func(ctx context.Context, q port.Queue) error {
			return errors.Join(q.Send(ctx, []port.Message{{Body: []byte("x")}})...)
		}),
		"Receive": on(func(ctx context.Context, q port.Queue) error {
			return second(q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: time.Minute}))
		}),
		"Count":  on(func(ctx context.Context, q port.Queue) error { return second(q.Count(ctx)) }),
		"Peek":   on(func(ctx context.Context, q port.Queue) error { return second(q.Peek(ctx, 1)) }),
		"Clear":  on(func(ctx context.Context, q port.Queue) error { return second(q.Clear(ctx)) }),
		"Extend": on(func(ctx context.Context, q port.Queue) error { held := d; return q.Extend(ctx, &held, time.Minute) }),
		"Acknowledge": on(func(ctx context.Context, q port.Queue) error {
			return errors.Join(q.Acknowledge(ctx, []port.Delivery{d})...)
		}),
		"Release": on(func(ctx context.Context, q port.Queue) error { return q.Release(ctx, d, 0) }),
		"Poison":  on(func(ctx context.Context, q port.Queue) error { return q.Poison(ctx, d, "reason") }),
	}
}

func TestAQueueThatIsOutOfUseIsAnOutage(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"QueueBeingDeleted", "QueueDisabled"} {
		for name, call := range queueCalls() {
			t.Run(name+" answered "+code, func(t *testing.T) {
				t.Parallel()
				s, _ := scripted(t, answer{status: 409, code: code})
				if err := call(t.Context(), s.Queues); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s = error %v (%v), want unavailable", name, err, fault.CodeOf(err))
				}
			})
		}
	}
}

func TestAnUnchangedStateTransfersNothing(t *testing.T) {
	t.Parallel()
	s, _ := scripted(t, answer{status: 304})
	doc, err := s.States.Load(t.Context(), "w", goodTag)
	if err != nil || !doc.Unchanged || doc.Body != nil || doc.Tag != goodTag {
		t.Errorf("Load at 304 = %+v, error %v, want unchanged at the known tag", doc, err)
	}
}

func TestATagOfAnotherKindIsNeverSent(t *testing.T) {
	t.Parallel()
	for _, tag := range []port.Tag{"", "no-such-tag", `"`, `W/"entity"`, "\"a\nb\"", `*`} {
		s, asked := scripted(t, answer{status: 201, header: map[string]string{"ETag": string(goodTag)}})
		if _, err := s.States.Save(t.Context(), "w", nil, tag); !fault.Is(err, fault.Conflict) {
			t.Errorf("Save at %q = error %v, want a conflict", tag, err)
		}
		if n := asked.Load(); n != 0 {
			t.Errorf("Save at %q reached the service", tag)
		}
	}
}

func TestTheServiceIsGivenItsPause(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "99999999": time.Hour, "-1": 0, "soon": 0} {
		s, _ := scripted(t, answer{status: 503, code: "ServerBusy", header: map[string]string{"Retry-After": header}})
		if _, err := s.States.Load(t.Context(), "w", ""); fault.RetryAfter(err) != want {
			t.Errorf("RetryAfter at %q = %v, want %v", header, fault.RetryAfter(err), want)
		}
	}
}

func TestNoErrorShowsASecret(t *testing.T) {
	t.Parallel()
	const sas = "BlobEndpoint=https://signed.blob.core.windows.net;QueueEndpoint=https://signed.queue.core.windows.net;TableEndpoint=https://signed.table.core.windows.net;SharedAccessSignature=sv=2024&sig=c2lnbmF0dXJl"
	for name, way := range map[string]transport{
		"no answer": func(*http.Request) (*http.Response, error) { return nil, errDropped },
		"a refusal": func(r *http.Request) (*http.Response, error) {
			return answer{status: 403, body: "<Error>" + r.URL.String() + "</Error>"}.to(r)
		},
	} {
		for _, text := range []string{sas, scriptedAccount} {
			a := parse(t, text)
			s, err := azstorage.Open(t.Context(), azstorage.Options{Account: a, Prefix: "Demo", Transport: way.client()})
			if err != nil {
				t.Fatal(err)
			}
			_, loadErr := s.States.Load(t.Context(), "w", "")
			_, rowErr := s.Index.Get(t.Context(), "w")
			for _, shown := range []string{fmt.Sprint(loadErr), fmt.Sprint(rowErr), fmt.Sprint(s.Queues.Ensure(t.Context(), "cpu")), fmt.Sprintf("%v %+v %#v %s", a, a, a, a), a.LogValue().String()} {
				if strings.Contains(shown, "c2lnbmF0dXJl") || strings.Contains(shown, "c2VjcmV0") || strings.Contains(shown, "sig=") {
					t.Errorf("with %s a secret is shown: %s", name, shown)
				}
			}
		}
	}
}

func TestAnEndedContextIsACanceledCallWithItsCause(t *testing.T) {
	t.Parallel()
	s, asked := scripted(t, answer{status: 500})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("the worker stops"))
	_, err := s.States.Load(ctx, "w", "")
	if !fault.Is(err, fault.Canceled) || !strings.Contains(err.Error(), "the worker stops") || asked.Load() != 0 {
		t.Errorf("Load = error %v after %d calls, want canceled with its cause and no call", err, asked.Load())
	}
}

// noToken is a credential of a machine that nobody has signed in on.
type noToken struct{}

func (noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("nobody has signed in")
}

func TestAFailedSignInIsAnOutageWithItsRemedy(t *testing.T) {
	t.Parallel()
	s, err := azstorage.Open(t.Context(), azstorage.Options{
		Account: parse(t, "myaccount"), Prefix: "Demo", Credential: noToken{},
		Transport: transport(func(r *http.Request) (*http.Response, error) { return answer{status: 401}.to(r) }).client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"Load": second(s.States.Load(t.Context(), "w", "")), "Row": second(s.Index.Get(t.Context(), "w")), "Count": second(s.Queues.Queue("cpu").Count(t.Context())),
	} {
		if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Denied) {
			t.Errorf("%s without a sign-in = error %v (%v), want unavailable or denied", call, err, fault.CodeOf(err))
		}
		if remedy := fault.RemedyOf(err); !strings.Contains(remedy, "sign") {
			t.Errorf("%s without a sign-in advises %q", call, remedy)
		}
	}
}
