/** A dialog over the page. Focus goes in, stays in, and returns to where it came from; Esc closes it. */

import { Dialog as Base } from "@base-ui/react/dialog";
import { type ReactNode, useRef } from "react";
import { IconButton } from "./Button";
import { cx } from "./cx";
import css from "./Dialog.module.css";

export interface DialogProps {
	readonly title: string;
	readonly isOpen: boolean;
	readonly onClose: () => void;
	readonly children: ReactNode;
	/** The buttons at its end. */
	readonly actions?: ReactNode;
	readonly width?: "narrow" | "wide";
	/** Hides the title, which assistive technology still reads. */
	readonly isTitleHidden?: boolean;
}

/** What gets the focus first: a control of the content, else the first action, and not the button that closes it. */
const FIRST_CONTROL = "input, textarea, select, button, a[href]";

export function Dialog({ title, isOpen, onClose, children, actions, width = "narrow", isTitleHidden }: DialogProps) {
	const content = useRef<HTMLDivElement>(null);
	return (
		<Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
			<Base.Portal>
				<Base.Backdrop className={css.backdrop} />
				<Base.Popup
					className={cx(css.popup, css[width])}
					initialFocus={() => content.current?.querySelector<HTMLElement>(FIRST_CONTROL) ?? true}
				>
					{isTitleHidden ? (
						<Base.Title className="visually-hidden">{title}</Base.Title>
					) : (
						<header className={css.head}>
							<Base.Title className={css.title}>{title}</Base.Title>
							<IconButton label="Close" icon="close" onClick={onClose} />
						</header>
					)}
					<div ref={content} className={css.content}>
						<div className={css.body}>{children}</div>
						{actions !== undefined && <footer className={css.actions}>{actions}</footer>}
					</div>
				</Base.Popup>
			</Base.Portal>
		</Base.Root>
	);
}
