import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { navigate } from "wouter/use-browser-location";
import { answerRequests, renderInWindow } from "../../../test/render";
import { announcements } from "../../components/announce";
import { handleKey } from "../../components/keys";
import { explain, whyStore } from "../../components/refs/why-store";
import { toastStore } from "../../components/toasts";
import { uuid } from "../../model/run-fixtures";
import { Tour } from "./Tour";
import { tourStore } from "./tour-store";
import { useTourItems } from "./useTourItems";

const RUN = uuid(1);
const DEMO = {
	run: RUN,
	approval_node: uuid(2),
	node_stalled: uuid(3),
	file: "src/prices.py",
	line: 3,
	world: "shop",
	persons: ["ANN", "BOB"],
	context: "12",
};
const ANSWERS = {
	"GET /v1/demo": DEMO,
	"GET /api/attention": { items: [] },
	[`GET /api/runs/${RUN}`]: { run: { id: RUN, artifacts: {} } },
};
const FRESH = tourStore.getInitialState();
const onKey = (event: KeyboardEvent) => handleKey(event);

beforeEach(() => {
	localStorage.clear();
	tourStore.setState(FRESH, true);
	toastStore.setState({ toasts: [] });
	whyStore.setState({ ref: null });
	history.replaceState(null, "", "/");
	addEventListener("keydown", onKey);
});
afterEach(() => {
	removeEventListener("keydown", onKey);
	document.body.innerHTML = "";
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

function Commands() {
	return useTourItems().map(({ id, label, detail, does }) => (
		<button key={id} type="button" onClick={() => does.kind === "run" && does.run()}>
			{`${label}, ${detail}`}
		</button>
	));
}

/** A window of a demo, with the commands of the search. */
function open(answers: Readonly<Record<string, unknown>> = ANSWERS) {
	answerRequests(answers);
	renderInWindow(
		<>
			<Tour />
			<Commands />
		</>,
	);
}

const step = (name: RegExp) => screen.findByRole("region", { name });
const press = (name: string | RegExp) => fireEvent.click(screen.getByRole("button", { name }));

test("a server that is no demo has no tour, and the search has no command for it", async () => {
	const requests = answerRequests({}).requests;
	renderInWindow(
		<>
			<Tour />
			<Commands />
		</>,
	);
	await waitFor(() => expect(requests.length).toBe(1));
	expect(screen.queryByRole("region")).toBeNull();
	expect(screen.queryByRole("button")).toBeNull();
});

describe("in a demo", () => {
	test("the tour opens by itself, and neither leaves the page nor takes the focus", async () => {
		history.replaceState(null, "", "/sessions");
		open();
		const card = await step(/Everything that waits for you Tour, 1 of 7/);
		expect(card.textContent).toContain("This step is on another page");
		expect([location.pathname, document.activeElement]).toEqual(["/sessions", document.body]);
		press("Open its page");
		expect(location.pathname).toBe("/");
		await waitFor(() => expect(document.activeElement?.textContent).toContain("Everything that waits"));
	});

	test("Next and Back go through the steps, each on its page and with the focus", async () => {
		open();
		await step(/1 of 7/);
		expect(screen.queryByRole("button", { name: "Back" })).toBeNull();
		press("Next");
		await step(/2 of 7/);
		press("Next");
		// No diff of the file: there is no page to open.
		await step(/3 of 7/);
		press("Next");
		await step(/4 of 7/);
		expect(location.pathname).toBe(`/runs/${RUN}/why`);
		await waitFor(() => expect(document.activeElement?.textContent).toContain("Why is nothing happening?"));
		press("Back");
		await step(/3 of 7/);
	});

	test("an act makes its step done, for good, and it is announced", async () => {
		localStorage.setItem("turnkeep.tour", JSON.stringify({ run: RUN, step: "people", isOpen: true }));
		history.replaceState(null, "", "/ledgers/shop?as=ANN");
		open();
		const card = await step(/5 of 7/);
		expect(card.textContent).toContain("You see this ledger as ANN does");
		act(() => navigate("/ledgers/shop?as=BOB"));
		await waitFor(() => expect(card.textContent).toContain("✓ Done. This is exactly what BOB sees"));
		expect(announcements.getState().polite.text).toMatch(/^Done\. This is exactly what BOB sees/);
		act(() => navigate("/ledgers/shop"));
		expect(card.textContent).toContain("✓ Done.");
	});

	test("a step that begins again is not done by what is left from before", async () => {
		localStorage.setItem("turnkeep.tour", JSON.stringify({ run: RUN, step: "fork", isOpen: true }));
		history.replaceState(null, "", "/ledgers/shop?as=BOB");
		open();
		await step(/6 of 7/);
		press("Back");
		const card = await step(/5 of 7/);
		expect(location.search).toBe("?as=ANN");
		expect(card.textContent).not.toContain("Done");
	});

	test("a line that is explained is done, and the panel closes with the step", async () => {
		localStorage.setItem("turnkeep.tour", JSON.stringify({ run: RUN, step: "line", isOpen: true }));
		open();
		const card = await step(/3 of 7/);
		act(() => explain(`artifact://${uuid(9)}`));
		expect(card.textContent).not.toContain("Done");
		act(() => explain(`artifact://${uuid(9)}#src/prices.py:3`));
		await waitFor(() => expect(card.textContent).toContain("✓ Done."));
		press("Next");
		expect(whyStore.getState().ref).toBeNull();
	});

	test("a target that does not appear is said to be missing, and one that appears is not", async () => {
		vi.useFakeTimers({ shouldAdvanceTime: true });
		localStorage.setItem("turnkeep.tour", JSON.stringify({ run: RUN, step: "fork", isOpen: true }));
		history.replaceState(null, "", "/history/12");
		open();
		const card = await step(/6 of 7/);
		expect(card.textContent).toContain("This button starts another history");
		await act(() => vi.advanceTimersByTimeAsync(4_000));
		expect(card.textContent).toContain("The button is not shown");
		const button = document.createElement("button");
		button.dataset.tour = "fork";
		await act(async () => {
			document.body.append(button);
			await vi.advanceTimersByTimeAsync(100);
		});
		expect(card.textContent).toContain("This button starts another history");
		press("Go to the button");
		expect(document.activeElement).toBe(button);
		fireEvent.keyDown(button, { key: "t" });
		expect(document.activeElement?.textContent).toContain("Fork a history");
		fireEvent.keyDown(document.activeElement ?? button, { key: "t" });
		expect(document.activeElement).toBe(button);
	});

	test("it is left by Esc, stays closed, and is resumed where it was", async () => {
		open();
		await step(/1 of 7/);
		press("Next");
		await step(/2 of 7/);
		fireEvent.keyDown(document.body, { key: "Escape" });
		expect(screen.queryByRole("region")).toBeNull();
		expect(toastStore.getState().toasts.map(({ text }) => text)).toEqual([
			"You left the tour at step 2. Search for “tour” to go on with it.",
		]);
		cleanup();
		tourStore.setState(FRESH, true);
		open();
		expect(await screen.findByRole("button", { name: "Start the tour, from its first step" })).toBeTruthy();
		expect(screen.queryByRole("region")).toBeNull();
		press("Resume the tour, at step 2 of 7");
		await step(/2 of 7/);
		press(/^Start the tour/);
		await step(/1 of 7/);
		expect(screen.queryByRole("button", { name: /^Resume the tour/ })).toBeNull();
	});

	test("it ends after the last step, and then begins with the first one", async () => {
		localStorage.setItem("turnkeep.tour", JSON.stringify({ run: RUN, step: "apply", isOpen: true }));
		open({ ...ANSWERS, [`GET /api/runs/${RUN}`]: { run: { id: RUN, artifacts: { a: { name: "apply.json" } } } } });
		const card = await step(/7 of 7/);
		await waitFor(() => expect(card.textContent).toContain("✓ Done."));
		press("Finish");
		expect(screen.queryByRole("region")).toBeNull();
		expect(toastStore.getState().toasts[0]?.text).toContain("That was the tour.");
		expect(screen.queryByRole("button", { name: /^Resume the tour/ })).toBeNull();
		press(/^Start the tour/);
		await step(/1 of 7/);
	});
});
