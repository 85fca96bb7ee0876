// The errors of the client, and whether a retry may help.

package turnkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"turnkeep.dev/go/internal/wire"
)

// The server's errors, by code. An *APIError matches one of them with errors.Is.
var (
	ErrBadRequest          = errors.New("turnkeep: bad request")
	ErrUnauthorized        = errors.New("turnkeep: no token or a wrong one")
	ErrForbidden           = errors.New("turnkeep: forbidden")
	ErrNotFound            = errors.New("turnkeep: not found")
	ErrConflict            = errors.New("turnkeep: conflict")
	ErrPreconditionFailed  = errors.New("turnkeep: precondition failed")
	ErrTooLarge            = errors.New("turnkeep: too large")
	ErrUnprocessable       = errors.New("turnkeep: unprocessable")
	ErrFailedDependency    = errors.New("turnkeep: failed dependency")
	ErrTooManyRequests     = errors.New("turnkeep: too many requests")
	ErrInternal            = errors.New("turnkeep: a fault of the server")
	ErrUnavailable         = errors.New("turnkeep: unavailable")
	ErrInsufficientStorage = errors.New("turnkeep: no room on the server's disk")
)

// The client's own errors.
var (
	// ErrConnect says that no connection could be made.
	ErrConnect = errors.New("turnkeep: cannot connect")
	// ErrConnectionLost says that the connection ended before the answer came.
	ErrConnectionLost = errors.New("turnkeep: the connection was lost")
	// ErrOutcomeUnknown says that a write without an idempotency key was sent and may have been carried
	// out: the answer was lost, the caller stopped waiting for it, or the server was unavailable.
	ErrOutcomeUnknown = errors.New("turnkeep: the request may have been carried out")
	// ErrProtocol says that the server's answer does not follow the protocol.
	ErrProtocol = errors.New("turnkeep: the server's answer does not follow the protocol")
	// ErrHashMismatch says that bytes do not match their hash.
	ErrHashMismatch = errors.New("turnkeep: the bytes do not have their hash")
	// ErrBadPayload says that a payload does not decompress to its declared length.
	ErrBadPayload = errors.New("turnkeep: the payload does not decompress")
	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("turnkeep: the client is closed")
)

var sentinels = map[int]error{
	400: ErrBadRequest, 401: ErrUnauthorized, 403: ErrForbidden, 404: ErrNotFound, 409: ErrConflict,
	412: ErrPreconditionFailed, 413: ErrTooLarge, 422: ErrUnprocessable, 424: ErrFailedDependency,
	429: ErrTooManyRequests, 500: ErrInternal, 503: ErrUnavailable, 507: ErrInsufficientStorage,
}

// APIError is an error response of the server.
type APIError struct {
	// Status is the number, which is the HTTP status of the same error.
	Status int
	// Code is the canonical word, such as "NotFound"; empty from a server that sends plain text.
	Code string
	// Message is for people.
	Message string
	// Details are values that belong to the error, such as "actual_head_turn_id". Ids are strings.
	Details map[string]any
}

// Error is the message with its number.
func (e *APIError) Error() string {
	return fmt.Sprintf("turnkeep: %s (%d %s)", e.Message, e.Status, e.Code)
}

// Is matches the sentinel of the error's number.
func (e *APIError) Is(target error) bool {
	sentinel := sentinels[e.Status]
	return sentinel != nil && target == sentinel
}

// ActualHead is the context's head, if the error is a conflict with the expected head.
func (e *APIError) ActualHead() (TurnID, bool) {
	id, ok := e.number("actual_head_turn_id")
	return TurnID(id), ok
}

// number is an id or position among the details.
func (e *APIError) number(name string) (uint64, bool) {
	text, _ := e.Details[name].(string)
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

func (e *APIError) retryable() bool {
	return e.Status == 429 || e.Status == 503 || e.Status == 507
}

// apiError parses an error's JSON. Any other text becomes the message.
func apiError(status int, detail []byte) *APIError {
	var body struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	if json.Unmarshal(detail, &body) != nil || body.Message == "" {
		return &APIError{Status: status, Message: string(detail)}
	}
	return &APIError{Status: status, Code: body.Code, Message: body.Message, Details: body.Details}
}

// IsRetryable says whether the same request may succeed later, and sending it again cannot carry it out
// twice: lost connections and 429, 503, 507, unless the outcome is unknown. The client has retried such an
// error already, as often as its Retry says.
func IsRetryable(err error) bool {
	for _, final := range []error{ErrOutcomeUnknown, ErrClosed, ErrProtocol, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, final) {
			return false
		}
	}
	if errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrConnect) {
		return true
	}
	var refused *APIError
	return errors.As(err, &refused) && refused.retryable()
}

func lost(cause error) error { return fmt.Errorf("%w: %w", ErrConnectionLost, cause) }

func protocolError(cause error) error { return fmt.Errorf("%w: %w", ErrProtocol, cause) }

func wrongAnswer(answered wire.MsgType) error {
	return fmt.Errorf("%w: message type %d does not belong to the request", ErrProtocol, answered)
}
