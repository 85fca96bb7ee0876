// Evolution: what a bundle may add to the published types. All rules of the server are here, and tests compare
// the verdicts of both.

package registry

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// History is what was published so far: the fold of bundles, in order. It follows the server's rules, so
// that a bundle that it takes is one that a server with the same history takes. The zero value is empty.
type History struct {
	bundles map[string]*Bundle
	types   map[string]*typeHistory
	enums   map[string]map[string]label
}

// typeHistory is the published history of one type.
type typeHistory struct {
	versions map[uint32]*version
	tags     map[uint64]tagHistory
	latest   *version
}

type tagHistory struct {
	frozen  map[string]any // nil for a tag that was never live
	bundle  string         // the one with the frozen part
	retired *version       // the one that retired it, or nil
}

type label struct{ text, bundle string }

// Check refuses a bundle that may not follow another one, which may be nil. It applies the rules by
// which the server refuses it, and fails with a [*Refusal] that names type, version, tag and bundle.
func Check(old, new *Bundle) error {
	var history History
	if old != nil {
		if _, err := history.Put(old); err != nil {
			return err
		}
	}
	_, err := history.Put(new)
	return err
}

// Put adds a bundle and says whether it was new; the same bundle may be put again. A refused bundle
// leaves no trace.
func (h *History) Put(b *Bundle) (bool, error) {
	if known, published := h.bundles[b.id]; published {
		if !reflect.DeepEqual(known.tree, b.tree) {
			return false, conflict("bundle `%s` is already published with other content", b.id)
		}
		return false, nil
	}
	next := History{bundles: maps.Clone(h.bundles), types: maps.Clone(h.types), enums: maps.Clone(h.enums)}
	next.prepare()
	if err := next.extendEnums(b); err != nil {
		return false, err
	}
	if err := next.refuseUnresolved(b); err != nil {
		return false, err
	}
	for _, id := range sortedKeys(b.types) {
		extended, err := h.types[id].extend(b.types[id])
		if err != nil {
			return false, err
		}
		next.types[id] = extended
	}
	next.bundles[b.id] = b
	*h = next
	return true, nil
}

func (h *History) prepare() {
	if h.bundles == nil {
		*h = History{bundles: map[string]*Bundle{}, types: map[string]*typeHistory{}, enums: map[string]map[string]label{}}
	}
}

// extendEnums adds labels; none may change or go.
func (h *History) extendEnums(b *Bundle) error {
	for _, id := range sortedKeys(b.enums) {
		known, labels := h.enums[id], b.enums[id]
		for _, number := range sortedKeys(known) {
			was := known[number]
			is, present := labels[number]
			if !present {
				return conflict("enum %s lost number %s, `%s` in bundle `%s`", id, number, was.text, was.bundle)
			}
			if is != was.text {
				return conflict("enum %s number %s is `%s` and was `%s` in bundle `%s`", id, number, is, was.text, was.bundle)
			}
		}
		extended := map[string]label{}
		for number, text := range labels {
			extended[number] = label{text, b.id}
		}
		maps.Copy(extended, known)
		h.enums[id] = extended
	}
	return nil
}

// refuseUnresolved refuses names that are in neither the bundle nor an earlier one.
func (h *History) refuseUnresolved(b *Bundle) error {
	for _, id := range sortedKeys(b.types) {
		for _, number := range slices.Sorted(maps.Keys(b.types[id])) {
			for _, field := range b.types[id][number].fields {
				if err := h.refuseUnresolvedIn(b, id, number, field); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (h *History) refuseUnresolvedIn(b *Bundle, id string, number uint32, field field) error {
	for _, name := range field.types {
		if b.types[name] == nil && h.types[name] == nil {
			return conflict("type %s version %d tag %d names the type `%s`, which is in neither this bundle nor an earlier one", id, number, field.tag, name)
		}
	}
	for _, name := range field.enums {
		if h.enums[name] == nil {
			return conflict("type %s version %d tag %d names the enum `%s`, which is in neither this bundle nor an earlier one", id, number, field.tag, name)
		}
	}
	return nil
}

// extend returns a history with the versions of a bundle. Only what was known before the bundle bounds
// them from below; among themselves they ascend.
func (h *typeHistory) extend(versions map[uint32]*version) (*typeHistory, error) {
	next := &typeHistory{versions: map[uint32]*version{}, tags: map[uint64]tagHistory{}}
	if h != nil {
		next = &typeHistory{versions: maps.Clone(h.versions), tags: maps.Clone(h.tags), latest: h.latest}
	}
	floor := next.latest
	for _, number := range slices.Sorted(maps.Keys(versions)) {
		v := versions[number]
		known := next.versions[number]
		switch {
		case known != nil && !reflect.DeepEqual(known.tree, v.tree):
			return nil, conflict("type %s version %d differs from what bundle `%s` published: publish a new version", v.typeID, number, known.bundle)
		case known != nil:
			continue
		case floor != nil && floor.number > number:
			return nil, conflict("type %s version %d is not above version %d, published by bundle `%s`", v.typeID, number, floor.number, floor.bundle)
		}
		if err := next.add(v); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func (h *typeHistory) add(v *version) error {
	live := map[uint64]bool{}
	for _, field := range v.fields {
		live[field.tag] = true
		if retired := h.tags[field.tag].retired; retired != nil {
			return conflict("type %s version %d tag %d was retired in version %d by bundle `%s`: tags are never reused",
				v.typeID, v.number, field.tag, retired.number, retired.bundle)
		}
		if err := h.freeze(v, field); err != nil {
			return err
		}
	}
	for _, field := range v.tombstones {
		if err := h.freeze(v, field); err != nil {
			return err
		}
	}
	for tag, known := range h.tags {
		if !live[tag] && known.retired == nil {
			known.retired = v
			h.tags[tag] = known
		}
	}
	h.versions[v.number], h.latest = v, v
	return nil
}

// freeze compares a tag's frozen part with the recorded one, or records it.
func (h *typeHistory) freeze(v *version, field field) error {
	known, seen := h.tags[field.tag]
	switch {
	case !seen || known.frozen == nil && field.frozen != nil:
		h.tags[field.tag] = tagHistory{frozen: field.frozen, bundle: v.bundle, retired: known.retired}
	case field.frozen != nil && !reflect.DeepEqual(known.frozen, field.frozen):
		return conflict("type %s version %d tag %d is %s and was %s in bundle `%s`: allocate a new tag",
			v.typeID, v.number, field.tag, compact(field.frozen), compact(known.frozen), known.bundle)
	}
	return nil
}

func compact(part map[string]any) string {
	text, err := json.Marshal(part)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
