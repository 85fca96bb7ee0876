// Descriptors: what one version of a type says about a tag. The history checks whether the names in them resolve.

package registry

import "slices"

// builtin has the names of the built-in types, which cannot be ids.
var builtin = []string{"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64",
	"string", "bytes", "typed_blob", "any", "array", "map"}

var keyTypes = []string{"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "string", "bytes", "any"}

var semantics = []string{"unix_ms", "unix_s", "duration_ms", "url", "markdown"}

// frozenKeys are the keys of a descriptor that never change for a tag.
var frozenKeys = []string{"type", "items", "key_type", "value_type"}

func isReserved(name string) bool { return slices.Contains(builtin, name) }

// site is where a descriptor is, and the field that it describes.
type site struct {
	*version
	*field
}

func (s site) refuse(key, expected string) error {
	return malformed("type %s version %d tag %d: %s must be %s", s.typeID, s.number, s.tag, key, expected)
}

// readField reads the descriptor of a tag, which is live or a tombstone.
func (v *version) readField(tag uint64, value any) error {
	s := site{v, &field{tag: tag}}
	published, ok := value.(map[string]any)
	if !ok {
		return s.refuse("descriptor", "an object")
	}
	members := v.usualSpelling(published)
	if _, err := s.flag(members, "optional"); err != nil {
		return err
	}
	tombstone, err := s.flag(members, "tombstone")
	if err != nil {
		return err
	}
	if tombstone {
		return s.readTombstone(members)
	}
	if s.name, err = s.text(members, "name"); err != nil {
		return err
	}
	if _, err := s.shape(members); err != nil {
		return err
	}
	s.frozen = frozenPart(members)
	v.fields = append(v.fields, *s.field)
	return nil
}

// readTombstone reads a retired tag, whose type may be repeated. What it names need not resolve.
func (s site) readTombstone(members map[string]any) error {
	if _, named := members["name"]; named {
		if _, err := s.text(members, "name"); err != nil {
			return err
		}
	}
	if _, typed := members["type"]; typed {
		if _, err := s.shape(members); err != nil {
			return err
		}
		s.frozen = frozenPart(members)
	}
	s.version.tombstones = append(s.version.tombstones, *s.field)
	return nil
}

func frozenPart(members map[string]any) map[string]any {
	frozen := map[string]any{}
	for _, key := range frozenKeys {
		if value, present := members[key]; present {
			frozen[key] = value
		}
	}
	return frozen
}

func (s site) flag(members map[string]any, key string) (bool, error) {
	value, present := members[key]
	flag, ok := value.(bool)
	if present && !ok {
		return false, s.refuse(key, "true or false")
	}
	return flag, nil
}

func (s site) text(members map[string]any, key string) (string, error) {
	text, ok := members[key].(string)
	if !ok || !isID(text) {
		return "", s.refuse(key, "a string of 1 to 512 bytes")
	}
	return text, nil
}

// shape reads the type of a field, records the names that it uses and returns the type's name.
func (s site) shape(members map[string]any) (string, error) {
	name, err := s.text(members, "type")
	if err != nil {
		return "", err
	}
	if value, present := members["semantic"]; present {
		if text, ok := value.(string); !ok || !slices.Contains(semantics, text) {
			return "", s.refuse("semantic", "unix_ms, unix_s, duration_ms, url or markdown")
		}
	}
	if _, present := members["enum"]; present {
		id, err := s.text(members, "enum")
		if err != nil {
			return "", err
		}
		s.enums = append(s.enums, id)
	}
	switch name {
	case "array":
		_, err = s.part(members, "items")
	case "map":
		err = s.mapping(members)
	default:
		s.use(name)
	}
	return name, err
}

func (s site) use(name string) {
	if !isReserved(name) {
		s.types = append(s.types, name)
	}
}

func (s site) mapping(members map[string]any) error {
	key, err := s.part(members, "key_type")
	if err != nil {
		return err
	}
	if !slices.Contains(keyTypes, key) {
		return s.refuse("key_type", "bool, an integer type, string, bytes or any")
	}
	_, err = s.part(members, "value_type")
	return err
}

// part reads a type's name or a whole descriptor.
func (s site) part(members map[string]any, key string) (string, error) {
	switch value := members[key].(type) {
	case map[string]any:
		return s.shape(value)
	case string:
		if value == "array" || value == "map" {
			return "", s.refuse(key, "a descriptor, since arrays and maps have parts of their own")
		}
		name, err := s.text(members, key)
		if err == nil {
			s.use(name)
		}
		return name, err
	}
	return "", s.refuse(key, "a type name or a descriptor")
}
