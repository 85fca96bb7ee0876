/** The form of a delivery: what is chosen, why it cannot be sent yet, and the body that it becomes. */

import type { Schema } from "../../model/schema";

export type Sink = "inject" | "node" | "store" | "clipboard" | "file";

export const SINKS: readonly { readonly value: Sink; readonly label: string }[] = [
	{ value: "inject", label: "Another session: type it into its program" },
	{ value: "node", label: "An agent of a run: as your message" },
	{ value: "store", label: "History: keep it" },
	{ value: "clipboard", label: "The clipboard of the server's desktop" },
	{ value: "file", label: "A file on the server's machine" },
];

export interface DeliverForm {
	readonly sink: Sink;
	readonly session: string;
	readonly run: string;
	readonly node: string;
	readonly path: string;
	readonly isRaw: boolean;
	readonly isBracketed: boolean;
	readonly isForced: boolean;
}

export const EMPTY_DELIVERY: DeliverForm = {
	sink: "inject",
	session: "",
	run: "",
	node: "",
	path: "",
	isRaw: false,
	isBracketed: true,
	isForced: false,
};

/** What is still missing; null if it can be sent. */
export function missingFrom(form: DeliverForm): string | null {
	switch (form.sink) {
		case "inject":
			return form.session === "" ? "Choose the session that gets it" : null;
		case "node":
			if (form.run === "") return "Choose the run";
			return form.node === "" ? "Choose the agent" : null;
		case "file":
			return form.path.startsWith("/") ? null : "Give the whole path of the file, from / on";
		case "store":
		case "clipboard":
			return null;
	}
}

/** The request. Only what the sink takes is sent. */
export function deliverBody(form: DeliverForm, seq: string | null): Schema<"DeliverCaptured"> {
	const turn = seq === null ? {} : { seq };
	const base = { sink: form.sink, raw: false, bracketed: false, force: false, ...turn };
	switch (form.sink) {
		case "inject":
			return {
				...base,
				session: form.session,
				raw: form.isRaw,
				bracketed: form.isBracketed,
				force: form.isForced,
			};
		case "node":
			return { ...base, run: form.run, node: form.node };
		case "file":
			return { ...base, path: form.path, raw: form.isRaw };
		case "clipboard":
			return { ...base, raw: form.isRaw };
		case "store":
			return base;
	}
}
