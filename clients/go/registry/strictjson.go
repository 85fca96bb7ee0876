// Strict JSON: this reader accepts and rejects the same documents as the server.

package registry

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// nestingMax is the deepest nesting of a bundle.
const nestingMax = 128

// strictReader reads JSON as the server does: a key that occurs twice in one object, a lone surrogate
// and nesting beyond the limit are refused. Numbers become float64, which is what makes two bundles
// equal or not.
type strictReader struct {
	data   []byte
	tokens *json.Decoder
}

func readJSON(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, malformed("it is not UTF-8")
	}
	r := strictReader{data: data, tokens: json.NewDecoder(bytes.NewReader(data))}
	r.tokens.UseNumber()
	value, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimLeft(data[r.tokens.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, malformed("it is not JSON: bytes after the document at byte %d", len(data)-len(rest))
	}
	return value, nil
}

func (r *strictReader) token() (json.Token, error) {
	begun := r.tokens.InputOffset()
	token, err := r.tokens.Token()
	if err != nil {
		return nil, malformed("it is not JSON: %v after byte %d", err, begun)
	}
	if text, isText := token.(string); isText && loneSurrogate(text, string(r.data[begun:r.tokens.InputOffset()])) {
		return nil, malformed("it is not JSON: lone surrogate after byte %d", begun)
	}
	return token, nil
}

// loneSurrogate reports whether the text has a replacement character that the document did not contain. The decoder of
// the standard library puts one in the place of each lone surrogate, and reports no error.
func loneSurrogate(text, written string) bool {
	const replacement = "\ufffd"
	found := strings.Count(text, replacement)
	return found > 0 && found != strings.Count(written, replacement)+strings.Count(strings.ToLower(written), `\ufffd`)
}

func (r *strictReader) value(depth int) (any, error) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if depth >= nestingMax {
			return nil, &Refusal{ErrTooDeep, "it nests deeper than " + strconv.Itoa(nestingMax) + " levels"}
		}
		if token == '{' {
			return r.object(depth + 1)
		}
		return r.array(depth + 1)
	case json.Number:
		number, err := strconv.ParseFloat(string(token), 64)
		if err != nil {
			return nil, malformed("it is not JSON: the number %s is out of range", token)
		}
		return number, nil
	}
	return token, nil
}

func (r *strictReader) array(depth int) (any, error) {
	items := []any{}
	for r.tokens.More() {
		item, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := r.token()
	return items, err
}

func (r *strictReader) object(depth int) (any, error) {
	members := map[string]any{}
	for r.tokens.More() {
		token, err := r.token()
		if err != nil {
			return nil, err
		}
		key, isText := token.(string)
		if !isText {
			return nil, malformed("it is not JSON: a key is no string")
		}
		if _, twice := members[key]; twice {
			return nil, conflict("the key `%s` occurs twice in one object", key)
		}
		if members[key], err = r.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := r.token()
	return members, err
}
