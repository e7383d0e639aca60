package local

import (
	"context"
	"math/rand/v2"
	"strconv"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.States = states{}

type states struct{ s *Store }

// newTag names a version that nothing ever had.
func newTag() port.Tag { return port.Tag(strconv.FormatUint(rand.Uint64(), 36)) }

// stored makes of nil an empty value, which NOT NULL accepts.
func stored(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}

func (v states) CreateDefinition(ctx context.Context, wf string, body []byte) error {
	if err := v.checkSize(ctx, "the definition of workflow "+wf, body); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		n, err := tx.exec("INSERT INTO definition (prefix, workflow, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", v.s.prefix, wf, stored(body))
		if err == nil && n == 0 {
			err = fault.Newf(fault.Exists, "workflow %q has a definition already", wf)
		}
		return err
	})
}

func (v states) Definition(ctx context.Context, wf string) ([]byte, error) {
	if err := v.s.check(ctx); err != nil {
		return nil, err
	}
	var body []byte
	found, err := v.s.read.row(ctx, "SELECT body FROM definition WHERE prefix = ? AND workflow = ?", []any{v.s.prefix, wf}, &body)
	if err == nil && !found {
		err = fault.Newf(fault.NotFound, "workflow %q has no definition", wf)
	}
	return body, err
}

func (v states) DeleteDefinition(ctx context.Context, wf string) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		_, err := tx.exec("DELETE FROM definition WHERE prefix = ? AND workflow = ?", v.s.prefix, wf)
		return err
	})
}

func (v states) Create(ctx context.Context, wf string, doc []byte) (port.Tag, error) {
	if err := v.checkSize(ctx, "the state of workflow "+wf, doc); err != nil {
		return "", err
	}
	tag := newTag()
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		n, err := tx.exec("INSERT INTO state (prefix, workflow, tag, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", v.s.prefix, wf, string(tag), stored(doc))
		if err == nil && n == 0 {
			err = fault.Newf(fault.Exists, "workflow %q has a state already", wf)
		}
		return err
	})
	return unless(err, tag)
}

func (v states) Load(ctx context.Context, wf string, known port.Tag) (port.Document, error) {
	if err := v.s.check(ctx); err != nil {
		return port.Document{}, err
	}
	var tag string
	var body []byte
	found, err := v.s.read.row(ctx, "SELECT tag, iif(tag = ?, NULL, body) FROM state WHERE prefix = ? AND workflow = ?", []any{string(known), v.s.prefix, wf}, &tag, &body)
	if err == nil && !found {
		err = fault.Newf(fault.NotFound, "workflow %q does not exist", wf)
	}
	if err != nil {
		return port.Document{}, err
	}
	return port.Document{Body: body, Tag: port.Tag(tag), Unchanged: port.Tag(tag) == known}, nil
}

func (v states) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (port.Tag, error) {
	if err := v.checkSize(ctx, "the state of workflow "+wf, doc); err != nil {
		return "", err
	}
	tag := newTag()
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		n, err := tx.exec("UPDATE state SET tag = ?, body = ? WHERE prefix = ? AND workflow = ? AND tag = ?", string(tag), stored(doc), v.s.prefix, wf, string(ifMatch))
		if err == nil && n == 0 {
			err = fault.Newf(fault.Conflict, "the state of workflow %q was changed by another writer", wf)
		}
		return err
	})
	return unless(err, tag)
}

func (v states) checkSize(ctx context.Context, what string, body []byte) error {
	if len(body) > maxState {
		return tooLarge(what, len(body), maxState)
	}
	return v.s.check(ctx)
}

// unless returns tag, or nothing with an error.
func unless(err error, tag port.Tag) (port.Tag, error) {
	if err != nil {
		return "", err
	}
	return tag, nil
}
