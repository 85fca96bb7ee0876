// A bundle's document: JSON that has the shape of a bundle, every descriptor read. Nothing here looks at
// what was published before.

package registry

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// idBytesMax is the most bytes that an id, a name or a label has.
const idBytesMax = 512

// Bundle is a set of descriptors that is well-formed by itself. It is immutable.
type Bundle struct {
	id    string
	types map[string]map[uint32]*version
	enums map[string]map[string]string // labels by number
	tree  map[string]any
}

// version is one version of a type.
type version struct {
	typeID     string
	number     uint32
	bundle     string // the one that has it
	fields     []field
	tombstones []field // of which some have a frozen part
	tree       any
	// bundleTypes has the ids of the bundle's types: names that are no other spellings.
	bundleTypes map[string]any
}

// field is a tag with what can never change about it.
type field struct {
	tag    uint64
	name   string
	frozen map[string]any // nil for a tombstone that repeats nothing
	types  []string       // the types that it names
	enums  []string       // the enums that it names
}

// Parse reads a bundle. It fails with a [*Refusal] if the server would refuse it whatever was published.
func Parse(data []byte) (*Bundle, error) {
	value, err := readJSON(data)
	if err != nil {
		return nil, err
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, malformed("the bundle must be an object")
	}
	return fromTree(tree)
}

// ID is the bundle's id.
func (b *Bundle) ID() string { return b.id }

func fromTree(tree map[string]any) (*Bundle, error) {
	b := &Bundle{types: map[string]map[uint32]*version{}, enums: map[string]map[string]string{}, tree: tree}
	id, ok := tree["bundle_id"].(string)
	if !ok {
		return nil, malformed("bundle_id must be a string")
	}
	if b.id = id; !isID(id) {
		return nil, malformed("bundle_id must have 1 to %d bytes", idBytesMax)
	}
	if tree["registry_version"] != 1.0 {
		return nil, malformed("registry_version must be 1")
	}
	if err := b.section("types", b.readType); err != nil {
		return nil, err
	}
	return b, b.section("enums", b.readEnum)
}

func isID(text string) bool { return len(text) >= 1 && len(text) <= idBytesMax }

// section reads the members of an optional object of the bundle.
func (b *Bundle) section(key string, read func(string, any) error) error {
	value, present := b.tree[key]
	if !present {
		return nil
	}
	members, ok := value.(map[string]any)
	if !ok {
		return malformed("%s must be an object", key)
	}
	for _, name := range sortedKeys(members) {
		if err := read(name, members[name]); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](members map[string]V) []string {
	return slices.Sorted(maps.Keys(members))
}

func (b *Bundle) readType(id string, value any) error {
	if !isID(id) {
		return malformed("a type id must have 1 to %d bytes", idBytesMax)
	}
	if isReserved(id) {
		return malformed("the type id `%s` must be a name that is no built-in type", id)
	}
	described, _ := value.(map[string]any)
	versions, _ := described["versions"].(map[string]any)
	if len(versions) == 0 {
		return malformed("type %s: versions must be an object with at least one version", id)
	}
	b.types[id] = map[uint32]*version{}
	for _, key := range sortedKeys(versions) {
		number, ok := canonicalNumber(key)
		if !ok || number == 0 || number > 1<<32-1 {
			return malformed("type %s version `%s` is not a version: versions are whole numbers from 1 on", id, key)
		}
		v := &version{typeID: id, number: uint32(number), bundle: b.id, tree: versions[key]}
		v.bundleTypes, _ = b.tree["types"].(map[string]any)
		if err := v.readFields(); err != nil {
			return err
		}
		b.types[id][v.number] = v
	}
	return nil
}

// canonicalNumber reads a decimal number without sign or leading zeros.
func canonicalNumber(text string) (uint64, bool) {
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil && strconv.FormatUint(number, 10) == text
}

func (v *version) readFields() error {
	described, _ := v.tree.(map[string]any)
	members, ok := described["fields"].(map[string]any)
	if !ok {
		return malformed("type %s version %d: fields must be an object", v.typeID, v.number)
	}
	for _, key := range sortedKeys(members) {
		tag, ok := canonicalNumber(key)
		switch {
		case !ok && strings.HasPrefix(key, "0") && strings.Trim(key, "0123456789") == "":
			return conflict("type %s version %d tag `%s` is another spelling of a tag: write it without leading zeros", v.typeID, v.number, key)
		case !ok:
			return malformed("type %s version %d tag `%s` is not a tag: tags are whole numbers", v.typeID, v.number, key)
		}
		if err := v.readField(tag, members[key]); err != nil {
			return err
		}
	}
	byTag := func(a, b field) int {
		if a.tag < b.tag {
			return -1
		}
		return 1
	}
	slices.SortFunc(v.fields, byTag)
	slices.SortFunc(v.tombstones, byTag)
	return v.refuseNameTwice()
}

func (v *version) refuseNameTwice() error {
	tags := map[string]uint64{}
	for _, field := range v.fields {
		if first, twice := tags[field.name]; twice {
			return conflict("type %s version %d tags %d and %d are both named `%s`", v.typeID, v.number, first, field.tag, field.name)
		}
		tags[field.name] = field.tag
	}
	return nil
}

func (b *Bundle) readEnum(id string, value any) error {
	if !isID(id) {
		return malformed("an enum id must have 1 to %d bytes", idBytesMax)
	}
	members, ok := value.(map[string]any)
	if !ok {
		return malformed("enum %s must be an object", id)
	}
	b.enums[id] = map[string]string{}
	for _, key := range sortedKeys(members) {
		if !isEnumNumber(key) {
			return malformed("enum %s number `%s` must be a whole number of 64 bits", id, key)
		}
		label, ok := members[key].(string)
		if !ok || !isID(label) {
			return malformed("enum %s number %s must be a string of 1 to %d bytes", id, key, idBytesMax)
		}
		b.enums[id][key] = label
	}
	return nil
}

func isEnumNumber(text string) bool {
	if _, ok := canonicalNumber(text); ok {
		return true
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return err == nil && number < 0 && strconv.FormatInt(number, 10) == text
}
