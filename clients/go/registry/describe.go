// From Go types to a bundle: the shapes of registered types as descriptors, put over an earlier bundle.

package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"turnkeep.dev/go/payload"
)

// Bundle describes the registered types as an extension of an earlier bundle, which may be nil. It keeps all
// earlier descriptors and adds the new ones. Its id is the namespace with a hash of the content, so that
// other content has another id. It fails with a [*Refusal] if the extension is illegal.
func (t *Types) Bundle(earlier *Bundle) (*Bundle, error) {
	tree := map[string]any{"registry_version": 1.0}
	if earlier != nil {
		tree = maps.Clone(earlier.tree)
	}
	types, enums := objectAt(tree, "types"), objectAt(tree, "enums")
	if err := t.describeTypes(types); err != nil {
		return nil, err
	}
	for _, known := range t.enums {
		enums[known.id] = known.labels
	}
	if tree["types"] = types; len(enums) > 0 {
		tree["enums"] = enums
	}
	delete(tree, "bundle_id")
	tree["bundle_id"] = t.namespace + "@" + digest(tree)
	bundle, err := fromTree(tree)
	if err != nil {
		return nil, err
	}
	return bundle, Check(earlier, bundle)
}

// objectAt copies a member that is an object, or gives an empty one.
func objectAt(tree map[string]any, key string) map[string]any {
	if members, ok := tree[key].(map[string]any); ok {
		return maps.Clone(members)
	}
	return map[string]any{}
}

func digest(tree map[string]any) string {
	// The tree consists of JSON values only, so encoding it cannot fail. Keys are sorted.
	text, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func (t *Types) describeTypes(types map[string]any) error {
	faults := t.faults
	for goType, ref := range t.refs {
		object, err := payload.Describe(goType)
		if err != nil {
			return err
		}
		fields, err := t.fields(object)
		if err != nil {
			faults = append(faults, fmt.Errorf("registry: %v: %w", ref, err))
			continue
		}
		described := objectAt(types, ref.ID)
		versions := objectAt(described, "versions")
		versions[strconv.FormatUint(uint64(ref.Version), 10)] = map[string]any{"fields": fields}
		described["versions"] = versions
		types[ref.ID] = described
	}
	return errors.Join(faults...)
}

func (t *Types) fields(object *payload.Object) (map[string]any, error) {
	fields := map[string]any{}
	for _, tag := range object.Tombstones {
		fields[strconv.FormatUint(tag, 10)] = map[string]any{"tombstone": true}
	}
	for _, field := range object.Fields {
		descriptor, err := t.descriptor(field.Shape)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", field.Name, err)
		}
		descriptor["name"] = field.Name
		if field.OmitEmpty || field.Shape.Pointer {
			descriptor["optional"] = true
		}
		if field.Doc != "" {
			descriptor["doc"] = field.Doc
		}
		fields[strconv.FormatUint(field.Tag, 10)] = descriptor
	}
	return fields, nil
}

// descriptor is a shape as bundles have it.
func (t *Types) descriptor(s *payload.Shape) (map[string]any, error) {
	switch s.Kind {
	case payload.KindArray:
		return t.arrayDescriptor(s)
	case payload.KindMap:
		return t.mapDescriptor(s)
	}
	descriptor := map[string]any{"type": s.Kind.String()}
	if s.Kind == payload.KindObject {
		ref, known := t.refs[s.Type]
		if !known {
			return nil, fmt.Errorf("%v is not registered: Add it too", s.Type)
		}
		descriptor["type"] = ref.ID
	}
	if s.Semantic != "" {
		descriptor["semantic"] = string(s.Semantic)
	}
	if known, isEnum := t.enums[s.Type]; isEnum {
		descriptor["enum"] = known.id
	}
	return descriptor, nil
}

// arrayDescriptor names simple items by their type alone; their semantic and enum are then the array's.
func (t *Types) arrayDescriptor(s *payload.Shape) (map[string]any, error) {
	items, err := t.descriptor(s.Items)
	if err != nil {
		return nil, err
	}
	if s.Items.Kind == payload.KindArray || s.Items.Kind == payload.KindMap {
		return map[string]any{"type": "array", "items": items}, nil
	}
	items["items"], items["type"] = items["type"], "array"
	return items, nil
}

func (t *Types) mapDescriptor(s *payload.Shape) (map[string]any, error) {
	key, err := t.part(s.Key)
	if err != nil {
		return nil, err
	}
	value, err := t.part(s.Items)
	if err != nil {
		return nil, err
	}
	descriptor := map[string]any{"type": "map", "key_type": key, "value_type": value}
	if s.Semantic != "" {
		descriptor["semantic"] = string(s.Semantic)
	}
	return descriptor, nil
}

// part returns a type's name if the name is enough, else a descriptor.
func (t *Types) part(s *payload.Shape) (any, error) {
	descriptor, err := t.descriptor(s)
	if err == nil && len(descriptor) == 1 {
		return descriptor["type"], nil
	}
	return descriptor, err
}
