/**
 * What measures inside the page.
 *
 * `installProbe` runs in the page before the UI, so it is one function that uses nothing from outside of it. A thing
 * counts as shown after the frame that has it was painted: it is looked for before each frame, and the time is taken by
 * the first task after that frame.
 */

/** When a screen is of use: so many elements of a selector are there, each with a text. */
export interface Useful {
	readonly selector: string;
	readonly text: string;
	readonly count: number;
}

/** What a key brings about. */
export type Response =
	| { readonly kind: "appears" | "vanishes"; readonly selector: string }
	/** Another element has the focus. */
	| { readonly kind: "focus" }
	/** The page has another heading. */
	| { readonly kind: "heading" }
	/** The field with the focus has this text. */
	| { readonly kind: "text"; readonly text: string };

/** Where the words of an agent are shown. `NODE` stands for its id. */
export interface Words {
	readonly nodes: readonly string[];
	readonly selector: string;
}

export interface Motion {
	/** When frames began. */
	readonly frames: readonly number[];
	/** How long tasks took that were longer than 50 ms. */
	readonly longTasks: readonly number[];
}

/** All times are in milliseconds. */
export interface Probe {
	/** Since the navigation began. */
	untilUseful(useful: Useful): Promise<number>;
	beginMotion(): void;
	endMotion(): Motion;
	/** Resolves to the time from the next key that is pressed to its response. */
	expectResponse(response: Response): void;
	response: Promise<number> | null;
	/** From now on, notes how long after its time stamp each counted word of an agent is shown. */
	followWords(words: Words): void;
	latencies: number[];
}

declare global {
	interface Window {
		probe: Probe;
	}
}

export function installProbe(): void {
	const longTasks: number[] = [];
	const noteTasks = (entries: PerformanceEntryList) => {
		for (const { duration } of entries) longTasks.push(duration);
	};
	const observer = new PerformanceObserver((list) => noteTasks(list.getEntries()));
	observer.observe({ type: "longtask" });

	let frames: number[] | null = null;
	const noteFrame = (now: number) => {
		if (frames === null) return;
		frames.push(now);
		requestAnimationFrame(noteFrame);
	};

	const afterThisFrame = (then: () => void) => {
		const { port1, port2 } = new MessageChannel();
		port1.onmessage = then;
		port2.postMessage(null);
	};
	const untilShown = (isShown: () => boolean) =>
		new Promise<number>((resolve) => {
			const look = () => {
				if (isShown()) afterThisFrame(() => resolve(performance.now()));
				else requestAnimationFrame(look);
			};
			requestAnimationFrame(look);
		});

	const heading = () => document.querySelector("h1")?.textContent ?? null;
	const conditionOf = (response: Response): (() => boolean) => {
		switch (response.kind) {
			case "appears":
				return () => document.querySelector(response.selector) !== null;
			case "vanishes":
				return () => document.querySelector(response.selector) === null;
			case "focus": {
				const before = document.activeElement;
				return () => document.activeElement !== before && document.activeElement !== document.body;
			}
			case "heading": {
				const before = heading();
				return () => heading() !== null && heading() !== before;
			}
			case "text":
				return () => (document.activeElement as HTMLInputElement | null)?.value === response.text;
		}
	};

	/** The words that came and are not shown yet, by agent: the number of the last one, and the event's time stamp. */
	const waiting = new Map<string, { readonly count: number; readonly sent: number }[]>();
	let words: Words | null = null;
	const lastCount = (text: string) => Number([...text.matchAll(/n(\d{6})/g)].at(-1)?.[1] ?? Number.NaN);
	const noteEvent = (data: unknown) => {
		if (words === null || typeof data !== "string" || !data.includes('"message.assistant.delta"')) return;
		const event = JSON.parse(data) as { nodeId: string; delta: string; ts: string };
		if (!words.nodes.includes(event.nodeId)) return;
		const count = lastCount(event.delta);
		if (Number.isNaN(count)) return;
		const queue = waiting.get(event.nodeId) ?? [];
		queue.push({ count, sent: Date.parse(event.ts) });
		waiting.set(event.nodeId, queue);
	};
	const noteWords = () => {
		requestAnimationFrame(noteWords);
		for (const [node, queue] of waiting) {
			if (queue.length === 0) continue;
			const text = document.querySelector(words?.selector.replace("NODE", node) ?? "")?.textContent ?? "";
			const count = lastCount(text);
			const painted = queue.filter((each) => each.count <= count);
			if (painted.length === 0) continue;
			waiting.set(
				node,
				queue.filter((each) => each.count > count),
			);
			afterThisFrame(() => {
				const now = performance.timeOrigin + performance.now();
				for (const { sent } of painted) window.probe.latencies.push(now - sent);
			});
		}
	};

	const NativeSocket = window.WebSocket;
	window.WebSocket = class extends NativeSocket {
		constructor(url: string | URL, protocols?: string | string[]) {
			super(url, protocols);
			this.addEventListener("message", ({ data }) => noteEvent(data));
		}
	};

	window.probe = {
		untilUseful: ({ selector, text, count }) =>
			untilShown(() => {
				const found = [...document.querySelectorAll(selector)];
				return found.filter((each) => each.textContent?.includes(text)).length >= count;
			}),
		beginMotion() {
			noteTasks(observer.takeRecords());
			longTasks.length = 0;
			frames = [];
			requestAnimationFrame(noteFrame);
		},
		endMotion() {
			noteTasks(observer.takeRecords());
			const motion = { frames: frames ?? [], longTasks: [...longTasks] };
			frames = null;
			return motion;
		},
		expectResponse(response) {
			let pressed = Number.POSITIVE_INFINITY;
			const isShown = conditionOf(response);
			const notePress = ({ timeStamp }: Event) => {
				pressed = timeStamp;
			};
			addEventListener("keydown", notePress, { capture: true, once: true });
			const isThere = () => pressed <= performance.now() && isShown();
			window.probe.response = untilShown(isThere).then((now) => now - pressed);
		},
		response: null,
		followWords(next) {
			words = next;
			window.probe.latencies = [];
			requestAnimationFrame(noteWords);
		},
		latencies: [],
	};
}
