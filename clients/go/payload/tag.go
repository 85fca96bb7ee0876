// Struct tags: their grammar, and the default names of fields.

package payload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Semantic is a meaning beyond the type, such as a time. The empty string means no semantic.
type Semantic string

// The semantics that descriptors know.
const (
	UnixMs     Semantic = "unix_ms"
	UnixS      Semantic = "unix_s"
	DurationMs Semantic = "duration_ms"
	URL        Semantic = "url"
	Markdown   Semantic = "markdown"
)

// fieldTag is a struct tag as written: `turnkeep:"NUMBER[,OPTION…]"`.
type fieldTag struct {
	number    uint64
	name      string
	semantic  Semantic
	omitEmpty bool
	unsigned  bool
	tombstone bool
}

func parseTag(text string) (fieldTag, error) {
	number, options, _ := strings.Cut(text, ",")
	tag := fieldTag{}
	var err error
	tag.number, err = strconv.ParseUint(number, 10, 64)
	if err != nil || tag.number == 0 || strconv.FormatUint(tag.number, 10) != number {
		return tag, fmt.Errorf("its tag `%s` does not begin with a number from 1 on", text)
	}
	for options != "" {
		var option string
		option, options, _ = strings.Cut(options, ",")
		if err := tag.set(option); err != nil {
			return tag, err
		}
	}
	return tag, nil
}

func (t *fieldTag) set(option string) error {
	key, value, _ := strings.Cut(option, "=")
	switch {
	case option == "omitempty":
		t.omitEmpty = true
	case option == "unsigned":
		t.unsigned = true
	case option == "tombstone":
		t.tombstone = true
	case key == "name" && value != "":
		t.name = value
	case key == "semantic":
		t.semantic = Semantic(value)
		return t.semantic.check()
	default:
		return fmt.Errorf("its tag has the option `%s`; legal are omitempty, name=…, semantic=…, unsigned, tombstone", option)
	}
	return nil
}

func (s Semantic) check() error {
	switch s {
	case UnixMs, UnixS, DurationMs, URL, Markdown:
		return nil
	}
	return errors.New("semantic must be unix_ms, unix_s, duration_ms, url or markdown")
}

// snakeCase is the name of a field that has no name of its own: ToolCallID becomes tool_call_id.
func snakeCase(name string) string {
	runes := []rune(name)
	var out strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			afterLower := !unicode.IsUpper(runes[i-1]) && runes[i-1] != '_'
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1]) && runes[i-1] != '_'
			if afterLower || beforeLower {
				out.WriteByte('_')
			}
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
