/** The frame around every screen: rail, top bar, drawer, search, keys, live regions, and the tour of a demo. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { usePathname } from "wouter/use-browser-location";
import { cx } from "../components/cx";
import { drawerHost } from "../components/drawer-host";
import { handleKey } from "../components/keys";
import { WhyPanel } from "../components/refs/WhyPanel";
import { ConnectionNotice } from "./ConnectionState";
import { KeysDialog } from "./KeysDialog";
import { LiveRegions } from "./LiveRegions";
import type { PlaceId } from "./places";
import { Rail } from "./Rail";
import { RefActionsDialog } from "./RefActionsDialog";
import { SearchDialog } from "./SearchDialog";
import css from "./Shell.module.css";
import { Toasts } from "./Toasts";
import { TopBar } from "./TopBar";
import { Tour } from "./tour/Tour";
import { type ShellDialog, useShellKeys } from "./useShellKeys";

export function Shell({ place, children }: { readonly place: PlaceId | null; readonly children: ReactNode }) {
	const [dialog, setDialog] = useState<ShellDialog | null>(null);
	const main = useRef<HTMLElement>(null);
	useShellKeys(setDialog);
	useFocusOnPageChange(main);
	useEffect(() => {
		const onKey = (event: KeyboardEvent) => handleKey(event);
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, []);
	const close = () => setDialog(null);
	return (
		<div className={css.shell}>
			<a className={css.skip} href="#main">
				Skip to the content
			</a>
			<Rail current={place} />
			<TopBar onSearch={() => setDialog({ kind: "search" })} onKeys={() => setDialog({ kind: "keys" })} />
			<div className={css.middle}>
				<ConnectionNotice />
				<main id="main" ref={main} tabIndex={-1} className={css.main}>
					{children}
				</main>
			</div>
			<DrawerColumn />
			<WhyPanel />
			<Tour />
			<SearchDialog isOpen={dialog?.kind === "search"} onClose={close} />
			<KeysDialog isOpen={dialog?.kind === "keys"} onClose={close} />
			{dialog?.kind === "actions" && <RefActionsDialog of={dialog.of} onClose={close} />}
			<Toasts />
			<LiveRegions />
		</div>
	);
}

/** The right column. It takes no room while it is empty. */
function DrawerColumn() {
	return (
		<aside
			aria-label="Details"
			className={cx(css.drawer)}
			ref={(element) => {
				drawerHost.setState({ element });
				return () => drawerHost.setState({ element: null });
			}}
		/>
	);
}

/** After going to another page, reading begins at its heading; Tab goes on from there. */
function useFocusOnPageChange(main: React.RefObject<HTMLElement | null>): void {
	const pathname = usePathname();
	const before = useRef(pathname);
	useEffect(() => {
		if (before.current === pathname) return;
		before.current = pathname;
		// The heading may come a moment later, with its chunk.
		const target = main.current?.querySelector("h1") ?? main.current;
		target?.focus({ preventScroll: true });
		main.current?.scrollTo({ top: 0 });
	}, [pathname, main]);
}
