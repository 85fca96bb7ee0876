// One request and its one answer.

package turnkeep

import (
	"context"

	"turnkeep.dev/go/internal/wire"
)

// call is one request that waits for one answer. It holds its part of the budget until the answer comes
// or the connection ends. A caller that stops waiting does not free it: the server still works on the request.
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

// finish completes the call. The connection calls it exactly once.
func (p *call) finish(o outcome) {
	if p.budget != nil {
		p.budget.giveBack(p.bytes)
	}
	p.done <- o
}

// wait returns the answer's frame.
func (p *call) wait(ctx context.Context) (frame, error) {
	select {
	case o := <-p.done:
		return o.frame, o.err
	case <-ctx.Done():
		return frame{}, ctx.Err()
	}
}

// answer waits for the answer to a request and decodes it. It returns an error for an ERROR frame and for an answer of
// another type.
func answer[T wire.Response](ctx context.Context, p *call, request wire.Request) (T, error) {
	f, err := p.wait(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return decodeAnswer[T](f, request)
}

func decodeAnswer[T wire.Response](f frame, request wire.Request) (T, error) {
	response, err := decode(f)
	decoded, ok := response.(T)
	if err == nil && (!ok || response.Type() != request.Type()) {
		err = wrongAnswer(response.Type())
	}
	return decoded, err
}

// decode decodes an answer without items. It returns an error for an ERROR frame.
func decode(f frame) (wire.Response, error) {
	response, err := wire.DecodeResponse(f.header, f.payload, false)
	if err != nil {
		return nil, protocolError(err)
	}
	if failure, ok := response.(*wire.Failure); ok {
		return nil, apiError(int(failure.Status), []byte(failure.Detail))
	}
	return response, nil
}
