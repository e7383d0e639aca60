package azstorage

import (
	"context"
	"sync"

	"jobq/core/fault"
)

// atOnce bounds the calls that one method has under way at a time.
const atOnce = 16

// parallel runs f for 0 to n-1, a bounded number at a time, and returns when
// all have ended.
func parallel(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// each runs f for 0 to n-1 in parallel and returns one error an item, or nil
// when none failed.
func each(n int, f func(i int) error) []error {
	errs := make([]error, n)
	parallel(n, func(i int) { errs[i] = f(i) })
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

// worst returns the error of errs that says most about a retry: a final one
// before a passing one.
func worst(errs []error) error {
	var found error
	for _, err := range errs {
		if err != nil && (found == nil || !fault.CodeOf(err).Transient()) {
			found = err
		}
	}
	return found
}

// removeAll deletes the blobs below prefix that match.
func (p *place) removeAll(ctx context.Context, prefix string, match func(item) bool, doing string) error {
	var names []string
	remove := func() error {
		defer func() { names = names[:0] }()
		return worst(each(len(names), func(i int) error { return p.remove(ctx, names[i], "", doing) }))
	}
	for it, err := range p.list(ctx, prefix, false, doing) {
		if err != nil {
			return err
		}
		if !match(it) {
			continue
		}
		if names = append(names, it.name); len(names) == 1000 {
			if err := remove(); err != nil {
				return err
			}
		}
	}
	return remove()
}
