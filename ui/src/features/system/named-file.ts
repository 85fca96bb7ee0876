import type { QueryKey } from "../../api/keys";
import type { Schema } from "../../model/schema";

/** A role or a team as a list shows it. */
export interface NamedFile {
	readonly name: string;
	readonly source: Schema<"FileSource">;
	readonly text: string;
	/** What it gives, in a few words; empty where the text itself says it best. */
	readonly note: string;
}

/** Where files of one kind are written. */
export interface NamedFileStore {
	readonly noun: "role" | "team";
	readonly format: "Markdown" | "TOML";
	readonly queryKey: QueryKey;
	readonly save: (name: string, text: string) => Promise<unknown>;
	readonly remove: (name: string) => Promise<unknown>;
}
