/** Registry bundles, as they are published: which types there are, and what their fields mean. */

/** How a field of a type is described in the registry. Unknown keys are kept by the server. */
export interface FieldDescriptor {
	/** The field's name; a tombstone has none. */
	readonly name?: string;
	/**
	 * `bool`, `i8` … `u64`, `f32`, `f64`, `string`, `bytes`, `array`, `map`, `typed_blob`, `any`, or a type's id. Also
	 * `int32` and `int64` for `i32` and `i64`, and `ref` beside `ref` for a type's id.
	 */
	readonly type?: string;
	/** Beside the type `ref`: the type's id. */
	readonly ref?: string;
	/** Of an array: the type of its items. */
	readonly items?: string | FieldDescriptor;
	/** Of a map: its keys. */
	readonly key_type?: string | FieldDescriptor;
	/** Of a map: its values. */
	readonly value_type?: string | FieldDescriptor;
	/** The enum that labels its numbers. */
	readonly enum?: string;
	/** What its value means, such as `unix_ms`. */
	readonly semantic?: string;
	/** Whether it may be absent. */
	readonly optional?: boolean;
	/** Whether the tag is retired. */
	readonly tombstone?: boolean;
}

/** The fields of one version of a type, by tag. */
export interface VersionDescriptor {
	readonly fields: Readonly<Record<string, FieldDescriptor>>;
}

/** Labels by number, the number as text. */
export type EnumDescriptor = Readonly<Record<string, string>>;

/** A registry bundle. */
export interface Bundle {
	readonly registry_version: number;
	readonly bundle_id: string;
	/** The types by id, their versions by number. */
	readonly types: Readonly<Record<string, { readonly versions: Readonly<Record<string, VersionDescriptor>> }>>;
	readonly enums?: Readonly<Record<string, EnumDescriptor>>;
}
