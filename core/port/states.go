package port

import "context"

// States holds the immutable definition and the runtime state of each
// workflow. State writes are compare-and-swap and are never repeated by a
// layer below the caller.
type States interface {
	// CreateDefinition stores the definition of wf. Fails with fault.Exists
	// when wf has one, whatever it says.
	CreateDefinition(ctx context.Context, wf string, body []byte) error
	// Definition returns the definition of wf, or fault.NotFound.
	Definition(ctx context.Context, wf string) ([]byte, error)
	// DeleteDefinition removes the definition of wf; an absent one is no error.
	DeleteDefinition(ctx context.Context, wf string) error

	// Create stores the first state of wf. Fails with fault.Exists when there
	// is one, and with fault.TooLarge before any call above Props.MaxState.
	Create(ctx context.Context, wf string, doc []byte) (Tag, error)
	// Load returns the state of wf. Where known is the tag of the stored state
	// the answer has Unchanged set and no Body; that costs no transfer.
	Load(ctx context.Context, wf string, known Tag) (Document, error)
	// Save replaces the state of wf if its tag still is ifMatch and returns the
	// new tag. Fails with fault.Conflict when another writer came first or the
	// state is gone.
	Save(ctx context.Context, wf string, doc []byte, ifMatch Tag) (Tag, error)
}

// Document is a stored state.
type Document struct {
	Body      []byte
	Tag       Tag
	Unchanged bool
}
