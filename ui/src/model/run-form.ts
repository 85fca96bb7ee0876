/** The settings of a run as a form has them, and the request that a changed form is. */

import type { RunFields } from "./run";
import type { Schema } from "./schema";

/** All as text, as it is typed. */
export interface RunForm {
	readonly title: string;
	readonly goal: string;
	/** One command a line. */
	readonly verify: string;
	readonly setup: string;
	readonly tokens: string;
	readonly dollars: string;
	readonly turns: string;
}

export function runForm(run: RunFields): RunForm {
	return {
		title: run.title,
		goal: run.goal ?? "",
		verify: run.verify.join("\n"),
		setup: run.setup.join("\n"),
		tokens: run.budget.tokens == null ? "" : String(run.budget.tokens),
		dollars: run.budget.costUsd == null ? "" : String(run.budget.costUsd),
		turns: String(run.limits.maxConcurrentTurns),
	};
}

/** What is wrong with a form; null if nothing is. */
export function faultOf(form: RunForm): string | null {
	if (form.title.trim() === "") return "Give the run a title";
	if (form.tokens !== "" && !/^[1-9][0-9]{0,14}$/.test(form.tokens)) return "The token budget is no whole number";
	if (form.dollars !== "" && !/^[0-9]{1,9}(\.[0-9]{1,6})?$/.test(form.dollars)) return "The dollar budget is no number";
	return /^[1-9][0-9]{0,3}$/.test(form.turns) ? null : "The number of open turns is no whole number";
}

/** The fields that differ. A budget is sent whole: a part of it that is left out has no limit. */
export function changeOf(before: RunForm, after: RunForm): Schema<"ChangeRun"> {
	const differs = (key: keyof RunForm) => before[key] !== after[key];
	const budget = {
		...(after.tokens === "" ? {} : { tokens: Number(after.tokens) }),
		...(after.dollars === "" ? {} : { costUsd: Number(after.dollars) }),
	};
	const change: Partial<Schema<"ChangeRun">> = {
		...(differs("title") ? { title: after.title.trim() } : {}),
		// The server takes no empty goal: null removes it.
		...(differs("goal") ? { goal: after.goal.trim() === "" ? null : after.goal.trim() } : {}),
		...(differs("verify") ? { verify: commandsOf(after.verify) } : {}),
		...(differs("setup") ? { setup: commandsOf(after.setup) } : {}),
		...(differs("tokens") || differs("dollars") ? { budget } : {}),
		...(differs("turns") ? { limits: { maxConcurrentTurns: Number(after.turns) } } : {}),
	};
	return change as Schema<"ChangeRun">;
}

/** Commands of a text, one a line. */
export function commandsOf(text: string): string[] {
	return text
		.split("\n")
		.map((line) => line.trim())
		.filter((line) => line !== "");
}
