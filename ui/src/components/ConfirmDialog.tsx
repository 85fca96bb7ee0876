/** Asks before something that cannot be undone: names the object, its extent, and what stays. */

import type { ReactNode } from "react";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { ErrorNote } from "./ErrorNote";

export interface ConfirmDialogProps {
	/** "Delete the run “Fix the test”?" */
	readonly title: string;
	/** What goes and what stays. */
	readonly children: ReactNode;
	/** The verb and its object: "Delete run". */
	readonly verb: string;
	readonly isOpen: boolean;
	readonly isPending?: boolean;
	readonly blocked?: string | null;
	readonly error?: unknown;
	readonly onConfirm: () => void;
	readonly onClose: () => void;
}

export function ConfirmDialog(props: ConfirmDialogProps) {
	const { title, children, verb, isOpen, isPending = false, blocked = null, error = null, onConfirm, onClose } = props;
	const actions = (
		<>
			<Button onClick={onClose}>Keep it</Button>
			<Button look="danger" isPending={isPending} blocked={blocked} onClick={onConfirm}>
				{verb}
			</Button>
		</>
	);
	return (
		<Dialog title={title} isOpen={isOpen} onClose={onClose} actions={actions}>
			{children}
			{error !== null && <ErrorNote error={error} />}
		</Dialog>
	);
}
