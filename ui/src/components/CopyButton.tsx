/** Copies a text, and says so in the same place. */

import { useEffect, useState } from "react";
import { announce } from "./announce";
import { IconButton } from "./Button";

const SAID_FOR_MS = 1500;

export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
	const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
	useEffect(() => {
		if (state === "idle") return;
		const timer = setTimeout(() => setState("idle"), SAID_FOR_MS);
		return () => clearTimeout(timer);
	}, [state]);
	const copy = async () => {
		const isCopied = await copyText(text);
		setState(isCopied ? "copied" : "failed");
		announce(isCopied ? "Copied" : "The browser did not allow copying");
	};
	const said = { idle: label, copied: "Copied", failed: "The browser did not allow copying" }[state];
	const icon = { idle: "copy", copied: "check", failed: "warning" } as const;
	return <IconButton label={said} icon={icon[state]} onClick={() => void copy()} />;
}

async function copyText(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}
