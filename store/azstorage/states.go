package azstorage

import (
	"context"

	"jobq/core/port"
)

var _ port.States = states{}

// maxBody is the largest state and output. The service takes more in one
// request, but nothing of jobq is meant to be larger.
const maxBody = 256 << 20

// states is {wf}.def.bin and {wf}.state.bin in the container of the workflows.
type states struct{ p *place }

func (v states) of(what, wf string) string {
	return what + " of workflow " + wf + " in account " + v.p.account
}

func (v states) CreateDefinition(ctx context.Context, wf string, body []byte) error {
	_, err := v.p.put(ctx, definitionBlob(wf), body, write{create: true}, "create "+v.of("the definition", wf))
	return err
}

func (v states) Definition(ctx context.Context, wf string) ([]byte, error) {
	got, err := v.p.get(ctx, definitionBlob(wf), "", "read "+v.of("the definition", wf))
	return got.body, err
}

func (v states) DeleteDefinition(ctx context.Context, wf string) error {
	return v.p.remove(ctx, definitionBlob(wf), "", "delete "+v.of("the definition", wf))
}

func (v states) Create(ctx context.Context, wf string, doc []byte) (port.Tag, error) {
	if len(doc) > maxBody {
		return "", tooLarge(v.of("the state", wf), len(doc), maxBody)
	}
	return v.p.put(ctx, stateBlob(wf), doc, write{create: true}, "create "+v.of("the state", wf))
}

func (v states) Load(ctx context.Context, wf string, known port.Tag) (port.Document, error) {
	got, err := v.p.get(ctx, stateBlob(wf), known, "load "+v.of("the state", wf))
	if err != nil {
		return port.Document{}, err
	}
	return port.Document{Body: got.body, Tag: got.tag, Unchanged: got.unchanged}, nil
}

func (v states) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (port.Tag, error) {
	if len(doc) > maxBody {
		return "", tooLarge(v.of("the state", wf), len(doc), maxBody)
	}
	return v.p.put(ctx, stateBlob(wf), doc, write{ifMatch: ifMatch}, "save "+v.of("the state", wf))
}
