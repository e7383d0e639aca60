package azstorage

import (
	"context"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

type keepTextKey struct{}

// keepText marks the context of an update of a message that shall leave its
// text as it is.
func keepText(ctx context.Context) context.Context {
	return context.WithValue(ctx, keepTextKey{}, true)
}

// textKeeper takes the body out of marked requests. The service leaves the text
// of a message alone when an update has none, but the client always sends one:
// every beat of a worker would carry the whole message, and a caller that has
// changed its copy would change the stored one.
type textKeeper struct{}

func (textKeeper) Do(req *policy.Request) (*http.Response, error) {
	if req.Raw().Context().Value(keepTextKey{}) != nil {
		if err := req.SetBody(nil, ""); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

// pathID writes the id of a message for the client, which puts it into a path
// as it is.
func pathID(id string) string { return url.PathEscape(id) }
