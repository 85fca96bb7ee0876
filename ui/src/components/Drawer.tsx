/**
 * Details beside the page, in the shell's right column; under 640 px a sheet over it. The page stays usable.
 *
 * Focus goes to its heading and returns to where it came from. Esc closes the drawer that was opened last.
 */

import { type ReactNode, useEffect, useId, useRef } from "react";
import { createPortal } from "react-dom";
import { useStore } from "zustand";
import { IconButton } from "./Button";
import css from "./Drawer.module.css";
import { drawerHost } from "./drawer-host";

export interface DrawerProps {
	readonly title: ReactNode;
	readonly onClose: () => void;
	readonly children: ReactNode;
	readonly actions?: ReactNode;
}

export function Drawer(props: DrawerProps) {
	const host = useStore(drawerHost, (state) => state.element);
	return host === null ? null : createPortal(<DrawerPanel {...props} />, host);
}

function DrawerPanel({ title, onClose, children, actions }: DrawerProps) {
	const id = useId();
	const heading = useRef<HTMLHeadingElement>(null);
	useEffect(() => {
		const cameFrom = document.activeElement;
		heading.current?.focus();
		return () => {
			const isFocusHere = document.activeElement === document.body || document.activeElement === null;
			if (isFocusHere && cameFrom instanceof HTMLElement && cameFrom.isConnected) cameFrom.focus();
		};
	}, []);
	return (
		<section
			aria-labelledby={id}
			className={css.drawer}
			onKeyDown={(event) => {
				if (event.key !== "Escape" || event.defaultPrevented) return;
				event.preventDefault();
				event.stopPropagation();
				onClose();
			}}
		>
			<header className={css.head}>
				<h2 id={id} ref={heading} tabIndex={-1} className={css.title}>
					{title}
				</h2>
				{actions}
				<IconButton label="Close details" icon="close" onClick={onClose} />
			</header>
			<div className={css.body}>{children}</div>
		</section>
	);
}
