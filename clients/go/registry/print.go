// Bundles as text: one form for one content, made for reading diffs.

package registry

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// JSON is the bundle as text to be committed and published: always the same for the same content, with
// one line per field and label, versions and tags in the order of their numbers.
func (b *Bundle) JSON() []byte {
	var out bytes.Buffer
	p := printer{&out}
	p.object(b.tree, 0)
	out.WriteByte('\n')
	return out.Bytes()
}

// printer writes trees of JSON.
type printer struct{ out *bytes.Buffer }

// firstKeys are the keys that come before others, in this order.
var firstKeys = []string{"registry_version", "bundle_id", "types", "enums",
	"name", "type", "items", "key_type", "value_type", "semantic", "enum", "optional", "tombstone", "doc"}

// linesDepth is how deep objects have a line per member: a bundle's fields and labels are one line each.
const linesDepth = 6

func (p printer) object(members map[string]any, depth int) {
	if len(members) == 0 {
		p.out.WriteString("{}")
		return
	}
	keys := sortedKeys(members)
	slices.SortStableFunc(keys, compareKeys)
	p.out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			p.out.WriteByte(',')
		}
		p.separate(depth, depth+1)
		p.scalar(key)
		p.out.WriteString(": ")
		p.value(members[key], depth+1)
	}
	p.separate(depth, depth)
	p.out.WriteByte('}')
}

// separate begins a new line where objects of this depth have lines, else it is a space.
func (p printer) separate(depth, indent int) {
	if depth >= linesDepth {
		p.out.WriteByte(' ')
		return
	}
	p.out.WriteString("\n" + strings.Repeat("  ", indent))
}

func (p printer) value(value any, depth int) {
	switch value := value.(type) {
	case map[string]any:
		p.object(value, depth)
	case []any:
		p.out.WriteByte('[')
		for i, item := range value {
			if i > 0 {
				p.out.WriteString(", ")
			}
			p.value(item, linesDepth)
		}
		p.out.WriteByte(']')
	default:
		p.scalar(value)
	}
}

func (p printer) scalar(value any) {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	// Strings, numbers, bools and null from JSON always go back into it.
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	p.out.Truncate(p.out.Len() - 1)
}

// compareKeys puts well-known keys first and numbers by value; the rest stays as it is.
func compareKeys(a, b string) int {
	rank := func(key string) int {
		if at := slices.Index(firstKeys, key); at >= 0 {
			return at
		}
		return len(firstKeys)
	}
	if rank(a) != rank(b) {
		return rank(a) - rank(b)
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX != nil || errY != nil:
		return 0
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
