import { expect, test } from "vitest";
import { changeOf, faultOf, type RunForm } from "./run-form";

const FORM: RunForm = {
	title: "Fix it",
	goal: "",
	verify: "make test",
	setup: "",
	tokens: "1000",
	dollars: "",
	turns: "4",
};

test("only what differs is sent", () => {
	expect(changeOf(FORM, FORM)).toEqual({});
	expect(changeOf(FORM, { ...FORM, title: " Fix all ", verify: "make test\n\n make lint \n" })).toEqual({
		title: "Fix all",
		verify: ["make test", "make lint"],
	});
	expect(changeOf(FORM, { ...FORM, turns: "8" })).toEqual({ limits: { maxConcurrentTurns: 8 } });
});

test("a budget is sent whole, and an empty part has no limit", () => {
	expect(changeOf(FORM, { ...FORM, dollars: "2.5" })).toEqual({ budget: { tokens: 1000, costUsd: 2.5 } });
	expect(changeOf(FORM, { ...FORM, tokens: "" })).toEqual({ budget: {} });
});

test.each([
	[{ title: " " }, "Give the run a title"],
	[{ tokens: "0" }, "The token budget is no whole number"],
	[{ dollars: "-1" }, "The dollar budget is no number"],
	[{ turns: "many" }, "The number of open turns is no whole number"],
	[{ dollars: "0.5" }, null],
])("%o is checked before it is sent", (fields, fault) => {
	expect(faultOf({ ...FORM, ...fields })).toBe(fault);
});
