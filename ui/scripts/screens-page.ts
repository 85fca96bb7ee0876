/** The page that lists the pictures of `docs/screens`. */

import type { Screens } from "../test/e2e/everything.ts";

export interface ScreenGroup {
	readonly folder: string;
	readonly screens: Screens;
}

const GROUP_WORDS: Readonly<Record<string, string>> = {
	empty: "## A new server\n\nEach screen says what would be here, and how to fill it.",
	full: "## A server with something of every kind\n\nTwo runs, a wrapped shell, a ledger with three people, a history with a fork.",
};

export function describeScreens(groups: readonly ScreenGroup[]): string {
	return `# Screens of the web UI

Pictures of every screen, made from a real server by \`npm run screens\` in \`ui/\`. The script needs what [the browser tests](../../ui/README.md) need and the Debian package \`pngquant\`. It writes the pictures and this page anew, in a few minutes.

*Wide* is a window of 1280 by 800 pixels, *phone* one of 390 by 844. In an address, \`…\` stands for an id.

The film at the beginning of the README is [light](demo-light.webp) and [dark](demo-dark.webp). \`npm run animation\` in \`ui/\` makes it from a real \`turnkeep up --demo\`. It needs the Debian package \`webp\` beside what the browser tests need.

${groups.map(describeGroup).join("\n")}`;
}

function describeGroup({ folder, screens }: ScreenGroup): string {
	const rows = Object.entries(screens).map(
		([name, path]) => `| ${name} | \`${withoutIds(path)}\` | ${links(folder, name)} |`,
	);
	return `${GROUP_WORDS[folder]}\n\n| screen | address | wide | phone |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

function links(folder: string, name: string): string {
	const file = `${folder}/${name.replaceAll(" ", "-")}`;
	const link = (window: string, theme: string) => `[${theme}](${file}-${window}-${theme}.png)`;
	return ["wide", "phone"].map((window) => `${link(window, "light")}, ${link(window, "dark")}`).join(" | ");
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const ENTRY = /e_[0-9a-z]{26}/g;
const HASH = /[0-9a-f]{64}/g;
const FOLDER = /folder=[^&]*/g;

function withoutIds(path: string): string {
	return path.replace(UUID, "…").replace(ENTRY, "…").replace(HASH, "…").replace(FOLDER, "folder=…");
}
