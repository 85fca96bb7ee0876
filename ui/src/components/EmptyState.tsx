/** A screen without content: what would be here, and the one action or command that fills it. */

import type { ReactNode } from "react";
import { CopyButton } from "./CopyButton";
import css from "./EmptyState.module.css";

export interface EmptyStateProps {
	readonly title: string;
	readonly children?: ReactNode;
	/** The button or link that fills it. */
	readonly action?: ReactNode;
	/** The command or program that fills it, to copy. */
	readonly command?: string;
}

export function EmptyState({ title, children, action, command }: EmptyStateProps) {
	return (
		<div className={css.empty}>
			<h2>{title}</h2>
			{children !== undefined && <div className={css.text}>{children}</div>}
			{command !== undefined && <CommandLine command={command} />}
			{action}
		</div>
	);
}

/** A command to copy. */
export function CommandLine({ command }: { readonly command: string }) {
	return (
		<div className={css.command}>
			<pre>{command}</pre>
			<CopyButton text={command} label="Copy the command" />
		</div>
	);
}
