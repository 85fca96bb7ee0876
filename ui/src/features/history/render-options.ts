/** How a payload is shown: every option of the API, each in the URL, so that a link shows the same. */

export interface RenderOption {
	/** Its name in the API and in the URL. */
	readonly name: string;
	readonly label: string;
	/** The first one is the API's own default. */
	readonly values: readonly { readonly value: string; readonly label: string }[];
}

export const RENDER_OPTIONS: readonly RenderOption[] = [
	{
		name: "type_hint_mode",
		label: "Read as",
		values: [
			{ value: "inherit", label: "the type that its writer declared" },
			{ value: "latest", label: "the latest version of that type" },
			{ value: "explicit", label: "another type" },
		],
	},
	{
		name: "include_unknown",
		label: "Unknown fields",
		values: [
			{ value: "0", label: "left out" },
			{ value: "1", label: "shown by their tags" },
		],
	},
	{
		name: "bytes_render",
		label: "Bytes",
		values: [
			{ value: "base64", label: "base64" },
			{ value: "hex", label: "hex" },
			{ value: "len_only", label: "only their length" },
		],
	},
	{
		name: "u64_format",
		label: "Integers of 64 bits",
		values: [
			{ value: "string", label: "text, always exact" },
			{ value: "number", label: "numbers" },
		],
	},
	{
		name: "enum_render",
		label: "Enums",
		values: [
			{ value: "label", label: "by their labels" },
			{ value: "number", label: "by their numbers" },
			{ value: "both", label: "both" },
		],
	},
	{
		name: "time_render",
		label: "Times",
		values: [
			{ value: "iso", label: "as dates" },
			{ value: "unix_ms", label: "milliseconds since 1970" },
		],
	},
];

export const VIEWS = [
	{ value: "typed", label: "typed" },
	{ value: "raw", label: "raw" },
	{ value: "both", label: "both" },
] as const;
export type TurnView = (typeof VIEWS)[number]["value"];

export function readView(text: string | null): TurnView {
	return VIEWS.find(({ value }) => value === text)?.value ?? "typed";
}

/** The value of an option in a query; the default if it has none or one that is not known. */
export function optionValue(option: RenderOption, query: URLSearchParams): string {
	const value = query.get(option.name);
	const known = option.values.find((each) => each.value === value) ?? option.values[0];
	return known?.value ?? "";
}

/** The query of a request for a turn. What is the default is left out, so that equal requests are equal. */
export function turnQuery(query: URLSearchParams, view: TurnView): string {
	const sent = new URLSearchParams({ view });
	for (const option of RENDER_OPTIONS) {
		const value = optionValue(option, query);
		if (value !== option.values[0]?.value) sent.set(option.name, value);
	}
	if (sent.get("type_hint_mode") === "explicit") {
		sent.set("as_type_id", query.get("as_type_id") ?? "");
		sent.set("as_type_version", query.get("as_type_version") ?? "");
	}
	return sent.toString();
}
