import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteServerTime } from "../api/server-clock";
import { Time } from "./Time";

beforeEach(() => vi.useFakeTimers({ now: Date.parse("2026-11-18T15:00:00Z") }));
afterEach(() => {
	noteServerTime(new Date().toUTCString());
	vi.useRealTimers();
});

test("an age is counted by the server's clock, as soon as it is known", () => {
	render(<Time at="2026-11-18T15:56:30Z" />);
	expect(screen.getByText("in 56 min")).toBeDefined();
	act(() => noteServerTime("Wed, 18 Nov 2026 16:00:00 GMT"));
	expect(screen.getByText("3 min ago")).toBeDefined();
});
