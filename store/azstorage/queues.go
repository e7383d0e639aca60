package azstorage

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"jobq/core/port"
)

var _ port.Queues = queues{}

// queues are the queues of one account; their names are those of the users.
type queues struct {
	client  *azqueue.ServiceClient
	account string
}

// Queue checks the name with the first call.
func (v queues) Queue(name string) port.Queue { return v.open(name) }

func (v queues) open(name string) queue { return queue{v, name, v.client.NewQueueClient(name)} }

// Ensure creates the poison queue with the queue.
func (v queues) Ensure(ctx context.Context, name string) error {
	if err := v.create(ctx, name); err != nil || poisonQueue(name) {
		return err
	}
	return v.create(ctx, port.PoisonName(name))
}

func (v queues) create(ctx context.Context, name string) error {
	doing := "create queue " + name + " in account " + v.account
	if err := checkQueueName(name); err != nil {
		return err
	}
	if err := ended(ctx, doing); err != nil {
		return err
	}
	client := v.client.NewQueueClient(name)
	_, err := client.Create(ctx, nil)
	if err == nil {
		return nil
	}
	switch code, said := status(err); {
	case code == http.StatusConflict && !placeGone(said):
		// It is there with metadata that somebody gave it.
		return nil
	case code == http.StatusForbidden:
		// Who may not create may still use what is there.
		if _, looked := client.GetProperties(ctx, nil); looked == nil {
			return nil
		}
	}
	return classify(ctx, err, nil, doing)
}
