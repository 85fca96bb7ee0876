// Other spellings of types, as bundles of similar stores have them: int32 and int64 for i32 and i64, and
// {"type": "ref", "ref": ID} for {"type": ID}. A name that is the id of one of the bundle's types means that type.

package registry

import "maps"

var usualNames = map[string]string{"int32": "i32", "int64": "i64"}

// usualSpelling returns a descriptor in the usual spelling, as a copy.
func (v *version) usualSpelling(descriptor map[string]any) map[string]any {
	usual := maps.Clone(descriptor)
	target, refers := usual["ref"].(string)
	if refers && usual["type"] == "ref" && !v.isOwnType("ref") {
		usual["type"] = target
		delete(usual, "ref")
	} else if value, present := usual["type"]; present {
		usual["type"] = v.usualName(value)
	}
	for _, part := range []string{"items", "key_type", "value_type"} {
		switch value := usual[part].(type) {
		case map[string]any:
			usual[part] = v.usualSpelling(value)
		case string:
			usual[part] = v.usualName(value)
		}
	}
	return usual
}

func (v *version) usualName(value any) any {
	name, _ := value.(string)
	if usual, known := usualNames[name]; known && !v.isOwnType(name) {
		return usual
	}
	return value
}

func (v *version) isOwnType(name string) bool {
	_, own := v.bundleTypes[name]
	return own
}
