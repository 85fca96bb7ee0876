/** A film of a page: pictures in both themes, each with the time for which it is shown. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";

export const THEMES = ["light", "dark"] as const;
type Theme = (typeof THEMES)[number];

/** The pointer moves in steps of this time, and comes to rest slowly. */
const STEP_MS = 50;
/** A press is seen for this time. */
const PRESS_MS = 200;

interface Picture {
	readonly paths: Readonly<Record<Theme, string>>;
	readonly ms: number;
}

interface Place {
	readonly x: number;
	readonly y: number;
}

export class Film {
	readonly #pictures: Picture[] = [];
	#pointer: Place;

	/** The folder gets the pictures; it must be empty. */
	constructor(
		private readonly page: Page,
		private readonly folder: string,
		begin: Place,
	) {
		this.#pointer = begin;
	}

	/** Shows the page as it is now, for this time. */
	async hold(ms: number): Promise<void> {
		const number = String(this.#pictures.length).padStart(4, "0");
		const path = (theme: Theme) => join(this.folder, `${number}-${theme}.png`);
		await this.page.evaluate(drawPointer, this.#pointer);
		for (const theme of THEMES) {
			await this.page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
			await this.page.screenshot({ path: path(theme), animations: "disabled" });
		}
		this.#pictures.push({ paths: { light: path("light"), dark: path("dark") }, ms });
	}

	/** Moves the pointer to the middle of an element. */
	async pointAt(target: Locator, ms: number): Promise<void> {
		await target.waitFor();
		const box = await target.boundingBox();
		if (box === null) throw new Error(`${target} has no place`);
		const begin = this.#pointer;
		const end = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
		const steps = Math.round(ms / STEP_MS);
		for (let step = 1; step <= steps; step += 1) {
			const part = 1 - (1 - step / steps) ** 3;
			this.#pointer = { x: begin.x + (end.x - begin.x) * part, y: begin.y + (end.y - begin.y) * part };
			await this.page.mouse.move(this.#pointer.x, this.#pointer.y);
			await this.hold(STEP_MS);
		}
	}

	/** Moves the pointer to an element and presses it. */
	async press(target: Locator, ms: number): Promise<void> {
		await this.pointAt(target, ms);
		await this.hold(PRESS_MS);
		await target.click();
	}

	get ms(): number {
		return this.#pictures.reduce((sum, { ms }) => sum + ms, 0);
	}

	/** Writes the film in one theme as an animated WebP that begins again at its end. */
	write(theme: Theme, path: string): void {
		const pictures = this.#pictures.flatMap(({ paths, ms }) => ["-d", String(ms), paths[theme]]);
		try {
			execFileSync("img2webp", ["-loop", "0", "-min_size", "-lossless", "-m", "4", ...pictures, "-o", path]);
		} catch (error) {
			if ((error as { readonly code?: string }).code === "ENOENT") {
				throw new Error("img2webp is missing: install the Debian package webp");
			}
			throw error;
		}
	}
}

/** A browser without a display shows no pointer; runs in the page. */
function drawPointer({ x, y }: Place): void {
	const ID = "film-pointer";
	let pointer = document.getElementById(ID);
	if (pointer === null) {
		const svg = "http://www.w3.org/2000/svg";
		const image = document.createElementNS(svg, "svg");
		const path = document.createElementNS(svg, "path");
		path.setAttribute("d", "M1 1v16l4-3.6 2.7 6 2.4-1.1-2.7-5.9h5.3z");
		path.setAttribute("fill", "#fff");
		path.setAttribute("stroke", "#111");
		image.setAttribute("width", "16");
		image.setAttribute("height", "22");
		image.append(path);
		pointer = document.createElement("div");
		pointer.id = ID;
		pointer.append(image);
		const { style } = pointer;
		style.position = "fixed";
		style.left = "0";
		style.top = "0";
		style.zIndex = "99999";
		style.pointerEvents = "none";
		document.body.append(pointer);
	}
	pointer.style.transform = `translate(${x}px, ${y}px)`;
}
