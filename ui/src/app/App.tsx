/** The window: providers, connections, and the screen of the URL. */

import { Tooltip } from "@base-ui/react/tooltip";
import { QueryClientProvider } from "@tanstack/react-query";
import { Suspense, useEffect } from "react";
import { usePathname } from "wouter/use-browser-location";
import { useConnection } from "../api/connection";
import { applyTheme } from "../api/preferences";
import { queryClient } from "../api/query";
import { connectWindow } from "../api/window";
import { Skeleton } from "../components/Skeleton";
import { NotFoundPage } from "./NotFoundPage";
import { findRoute, mountKey } from "./routes";
import { ScreenBoundary } from "./ScreenBoundary";
import { Shell } from "./Shell";
import { SignedOutPage } from "./SignedOutPage";

const TOOLTIP_DELAY_MS = 400;

export function App() {
	useEffect(applyTheme, []);
	useEffect(connectWindow, []);
	return (
		<QueryClientProvider client={queryClient}>
			<Tooltip.Provider delay={TOOLTIP_DELAY_MS}>
				<Window />
			</Tooltip.Provider>
		</QueryClientProvider>
	);
}

function Window() {
	const pathname = usePathname();
	const { state } = useConnection();
	if (state === "signed-out") return <SignedOutPage />;
	const matched = findRoute(pathname);
	const key = matched === null ? pathname : mountKey(matched);
	return (
		<Shell place={matched?.route.place ?? null}>
			<ScreenBoundary resetKey={pathname}>
				{matched === null ? (
					<NotFoundPage path={pathname} />
				) : (
					<Suspense fallback={<Skeleton lines={8} />}>
						<matched.route.Screen key={key} params={matched.params} />
					</Suspense>
				)}
			</ScreenBoundary>
		</Shell>
	);
}
