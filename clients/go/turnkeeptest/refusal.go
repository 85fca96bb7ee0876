// ERROR frames.

package turnkeeptest

import (
	"encoding/json"
	"errors"
	"fmt"

	"turnkeep.dev/go/internal/wire"
)

var words = map[uint32]string{
	400: "BadRequest", 404: "NotFound", 409: "Conflict", 413: "TooLarge", 422: "Unprocessable",
}

// refuse is an ERROR frame without details, with the word of its number.
func refuse(status uint32, format string, args ...any) *wire.Failure {
	return failure(status, words[status], fmt.Sprintf(format, args...), nil)
}

func tooLarge(limit, actual int) *wire.Failure {
	message := fmt.Sprintf("%d is over the limit of %d", actual, limit)
	return failure(413, "TooLarge", message, map[string]any{"limit": limit, "actual": actual})
}

func failure(status uint32, code, message string, details map[string]any) *wire.Failure {
	if details == nil {
		details = map[string]any{}
	}
	detail, err := json.Marshal(map[string]any{"code": code, "message": message, "details": details})
	if err != nil {
		detail = []byte(message)
	}
	return &wire.Failure{Status: status, Detail: string(detail)}
}

// refusalOf answers bytes that are not a request.
func refusalOf(err error) *wire.Failure {
	var bad *wire.DecodeError
	if errors.As(err, &bad) {
		switch bad.Class {
		case wire.ZeroID:
			return refuse(404, "%v", err)
		case wire.TooMany, wire.FrameTooLong:
			return refuse(413, "%v", err)
		}
	}
	return refuse(400, "%v", err)
}
