import { expect, test } from "vitest";
import { readFormDraft, writeFormDraft } from "./form-draft";

const FORM = { title: "Fix it", isCopy: false, person: null as string | null, rights: { write: true, run: false } };

test("only what was changed is kept, and nothing if all is as before", () => {
	expect(writeFormDraft(FORM, { ...FORM, title: "Fix all" })).toBe('{"title":"Fix all"}');
	expect(writeFormDraft(FORM, { ...FORM, rights: { ...FORM.rights } })).toBe("");
});

test("fields that were not changed follow the thing", () => {
	const text = writeFormDraft(FORM, { ...FORM, person: "ann", rights: { write: true, run: true } });
	const later = { ...FORM, title: "Renamed by somebody else" };
	expect(readFormDraft(later, text)).toEqual({ ...later, person: "ann", rights: { write: true, run: true } });
});

test.each([
	["nothing", ""],
	["no JSON", "{"],
	["another value", "7"],
	["a field of another name", '{"name":"x"}'],
	["a field of another type", '{"title":7,"isCopy":"yes","rights":[true],"person":3}'],
])("%s changes nothing", (_, text) => {
	expect(readFormDraft(FORM, text)).toEqual(FORM);
});
