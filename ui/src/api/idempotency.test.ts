import { act, renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { ApiError, NoAnswerError } from "./errors";
import { useFormKey } from "./idempotency";

test.each([
	["no answer", new NoAnswerError(true), "same"],
	["an answer that leaves the outcome open", new ApiError(503, "Unavailable", "busy"), "same"],
	["the first request is still carried out", new ApiError(409, "IN_PROGRESS", "wait"), "same"],
	["a refusal", new ApiError(400, "BadRequest", "no"), "new"],
])("after %s, the next press has the %s key", (_, error, expected) => {
	const { result } = renderHook(useFormKey);
	const before = result.current.key;
	act(() => result.current.renewIfRefused(error));
	expect(result.current.key === before ? "same" : "new").toBe(expected);
});
