// One request and its one answer.

package turnkeep

import (
	"context"

	"turnkeep.dev/go/internal/wire"
)

// call is one request that waits for one answer. It holds its part of the budget until the answer comes
// or the connection ends, also when nobody waits any more: the server still works on it.
type call struct {
	done chan outcome
	// budget gets bytes back when the call is finished; nil for calls that hold nothing.
	budget *budget
	bytes  int
}

type outcome struct {
	frame frame
	err   error
}

func newCall(budget *budget, bytes int) *call {
	return &call{done: make(chan outcome, 1), budget: budget, bytes: bytes}
}

// finish answers the call; the connection does it once.
func (p *call) finish(o outcome) {
	if p.budget != nil {
		p.budget.giveBack(p.bytes)
	}
	p.done <- o
}

// wait gives the answer, decoded; an ERROR frame is an error.
func (p *call) wait(ctx context.Context, extended bool) (wire.Response, error) {
	var o outcome
	select {
	case o = <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.err != nil {
		return nil, o.err
	}
	response, err := wire.DecodeResponse(o.frame.header, o.frame.payload, extended)
	if err != nil {
		return nil, protocolError(err)
	}
	if failure, ok := response.(*wire.Failure); ok {
		return nil, apiError(int(failure.Status), []byte(failure.Detail))
	}
	return response, nil
}
