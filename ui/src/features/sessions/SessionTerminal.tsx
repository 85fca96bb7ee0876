/** The tab of the terminal: the emulator where the terminal is shared, and otherwise how to share it. */

import { lazy, Suspense } from "react";
import { loadPart } from "../../api/load-part";
import { usePreferences } from "../../api/preferences";
import { EmptyState } from "../../components/EmptyState";
import { Skeleton } from "../../components/Skeleton";
import { useMedia } from "../../components/useMedia";
import { type Session, sessionName } from "../../model/session";
import { safeText } from "../../model/text-safety";

const TerminalView = lazy(() => loadPart(() => import("./TerminalView")));

export function SessionTerminal({ session }: { readonly session: Session }) {
	const { theme } = usePreferences();
	const isDark = useMedia("(prefers-color-scheme: dark)");
	if (!session.shared) {
		return (
			<EmptyState title="This terminal is private" command="turnkeep wrap --share -- claude">
				A terminal is shown only if its session was started with <code>--share</code>. Its captured turns are here all
				the same.
			</EmptyState>
		);
	}
	if (!session.connected) {
		return (
			<EmptyState title="The session has ended">Its terminal is gone. Its captured turns are still kept.</EmptyState>
		);
	}
	return (
		<Suspense fallback={<Skeleton lines={8} />}>
			{/* The emulator takes its colours when it opens, and a repaint costs little. */}
			<TerminalView key={`${theme}-${isDark}`} session={session.session} name={safeText(sessionName(session))} />
		</Suspense>
	);
}
