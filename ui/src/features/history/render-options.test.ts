import { expect, test } from "vitest";
import { readView, turnQuery } from "./render-options";

const sent = (query: string, view: "typed" | "both" = "typed") => turnQuery(new URLSearchParams(query), view);

test("defaults and unknown values are not sent", () => {
	expect(sent("")).toBe("view=typed");
	expect(sent("bytes_render=base64&enum_render=loud&other=1", "both")).toBe("view=both");
});

test("options are sent by the names of the API", () => {
	expect(sent("bytes_render=hex&include_unknown=1")).toBe("view=typed&include_unknown=1&bytes_render=hex");
});

test("another type is sent only with its mode", () => {
	expect(sent("as_type_id=a.B&as_type_version=2")).toBe("view=typed");
	expect(sent("type_hint_mode=explicit&as_type_id=a.B&as_type_version=2")).toBe(
		"view=typed&type_hint_mode=explicit&as_type_id=a.B&as_type_version=2",
	);
});

test("a view that is not known is typed", () => {
	expect(readView("raw")).toBe("raw");
	expect(readView("loud")).toBe("typed");
});
