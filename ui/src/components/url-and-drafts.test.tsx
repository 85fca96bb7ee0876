import { act, renderHook } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { useDraft } from "./useDraft";
import { useQueryParam } from "./useQueryParam";

beforeEach(() => {
	sessionStorage.clear();
	history.replaceState(null, "", "/runs?run=1");
});

test("a filter lives in the URL, beside others", () => {
	const { result } = renderHook(() => useQueryParam("kind"));
	expect(result.current[0]).toBeNull();
	act(() => result.current[1]("approval & more"));
	expect(result.current[0]).toBe("approval & more");
	expect(location.search).toBe("?run=1&kind=approval+%26+more");
	act(() => result.current[1](null));
	expect(location.search).toBe("?run=1");
});

test("a draft survives its form, belongs to its object, and is gone when it was sent", () => {
	const first = renderHook(() => useDraft("chat:a"));
	act(() => first.result.current[1]("hello"));
	first.unmount();
	const again = renderHook(({ of }) => useDraft(of), { initialProps: { of: "chat:a" } });
	expect(again.result.current[0]).toBe("hello");
	again.rerender({ of: "chat:b" });
	expect(again.result.current[0]).toBe("");
	again.rerender({ of: "chat:a" });
	act(() => again.result.current[2]());
	expect(again.result.current[0]).toBe("");
	expect(sessionStorage.length).toBe(0);
});
