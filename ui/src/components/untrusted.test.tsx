/** Text from elsewhere stays text, wherever it is shown. */

import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { JsonView } from "./JsonView";
import { Markdown } from "./Markdown";
import { MachineText, SafeText } from "./SafeText";

test("hidden characters are marks with a name", () => {
	const { container } = render(<SafeText text={"a\u202Eb\u200b"} />);
	expect(container.textContent).toBe("aRLObZWSP");
	expect(screen.getByText("RLO").title).toBe("Hidden character U+202E");
});

test("terminal escapes are stripped from what machines wrote", () => {
	const { container } = render(<MachineText text={"\u001b[31mred\u001b[0m"} />);
	expect(container.textContent).toBe("red");
});

test("Markdown has no HTML, no image and no dangerous link", () => {
	const text = [
		"<img src=x onerror=alert(1)>",
		"![cat](https://x.example/c.png)",
		"[a](javascript:alert(1))",
		"[b](https://x.example)",
	].join("\n\n");
	const { container } = render(<Markdown text={text} />);
	expect(container.querySelector("img, script, iframe")).toBeNull();
	const links = [...container.querySelectorAll("a")];
	expect(links.map((link) => link.getAttribute("href"))).toEqual(["https://x.example/c.png", "https://x.example"]);
	for (const link of links) expect(link.rel).toBe("noreferrer noopener");
	expect(container.textContent).toContain("<img src=x onerror=alert(1)>");
});

test("a text of Markdown that is too long is shown as it is", () => {
	const { container } = render(<Markdown text={`# ${"x".repeat(200_001)}`} />);
	expect(container.querySelector("pre")).not.toBeNull();
});

test("JSON folds, cuts and shows what it hides", async () => {
	const value = {
		list: Array.from({ length: 150 }, (_, at) => at),
		text: "y".repeat(600),
		deep: { inner: { leaf: "\u202E" } },
	};
	const { container } = render(<JsonView value={value} />);
	expect(container.textContent).not.toContain("149");
	await userEvent.click(screen.getByRole("button", { name: /Show more of 150 items/ }));
	expect(container.textContent).toContain("149");
	await userEvent.click(screen.getByRole("button", { name: "Show all 600 characters" }));
	expect(container.textContent).toContain("y".repeat(600));
	expect(container.textContent).not.toContain("leaf");
	await userEvent.click(screen.getByText("1 field", { selector: "details details details > summary *" }));
	expect(container.textContent).toContain("RLO");
});
