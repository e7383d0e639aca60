package memory

import (
	"bytes"
	"context"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.States = states{}

type states struct{ p *Process }

type document struct {
	body []byte
	tag  port.Tag
}

func (v states) CreateDefinition(ctx context.Context, wf string, body []byte) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if _, ok := v.p.s.definitions[wf]; ok {
		return fault.Newf(fault.Exists, "workflow %q has a definition already", wf)
	}
	v.p.s.definitions[wf] = bytes.Clone(body)
	return nil
}

func (v states) Definition(ctx context.Context, wf string) ([]byte, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	body, ok := v.p.s.definitions[wf]
	if !ok {
		return nil, fault.Newf(fault.NotFound, "workflow %q has no definition", wf)
	}
	return bytes.Clone(body), nil
}

func (v states) DeleteDefinition(ctx context.Context, wf string) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	delete(v.p.s.definitions, wf)
	return nil
}

func (v states) Create(ctx context.Context, wf string, doc []byte) (port.Tag, error) {
	if err := v.checkSize(wf, doc); err != nil {
		return "", err
	}
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	if _, ok := v.p.s.states[wf]; ok {
		return "", fault.Newf(fault.Exists, "workflow %q has a state already", wf)
	}
	return v.put(wf, doc), nil
}

func (v states) Load(ctx context.Context, wf string, known port.Tag) (port.Document, error) {
	if err := v.p.enter(ctx); err != nil {
		return port.Document{}, err
	}
	defer v.p.s.mu.Unlock()
	d, ok := v.p.s.states[wf]
	if !ok {
		return port.Document{}, fault.Newf(fault.NotFound, "workflow %q does not exist", wf)
	}
	if d.tag == known {
		return port.Document{Tag: d.tag, Unchanged: true}, nil
	}
	return port.Document{Body: bytes.Clone(d.body), Tag: d.tag}, nil
}

func (v states) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (port.Tag, error) {
	if err := v.checkSize(wf, doc); err != nil {
		return "", err
	}
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	if d, ok := v.p.s.states[wf]; !ok || d.tag != ifMatch {
		return "", fault.Newf(fault.Conflict, "the state of workflow %q was changed by another writer", wf)
	}
	return v.put(wf, doc), nil
}

// put stores doc under a new tag. The mutex is held.
func (v states) put(wf string, doc []byte) port.Tag {
	tag := v.p.s.nextTag()
	v.p.s.states[wf] = document{body: bytes.Clone(doc), tag: tag}
	return tag
}

func (v states) checkSize(wf string, doc []byte) error {
	if limit := v.p.s.props.MaxState; limit > 0 && len(doc) > limit {
		return tooLarge("the state of workflow "+wf, len(doc), limit)
	}
	return nil
}
