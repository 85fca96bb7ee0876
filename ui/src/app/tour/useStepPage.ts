/** Opens the page of a step when the step begins, and tells whether that page is open. */

import { useEffect } from "react";
import { navigate, usePathname } from "wouter/use-browser-location";
import { useStore } from "zustand";
import { isPageOf } from "./step-path";
import { noteVisit, tourStore } from "./tour-store";

/** `path` is undefined while it is not known, and null if the step has no page. */
export function useStepPage(path: string | null | undefined): boolean {
	const pathname = usePathname();
	const { isOnTheWay, page } = useStore(tourStore, (state) => state.visit);
	useEffect(() => {
		if (!isOnTheWay || path === undefined) return;
		if (path !== null && path !== `${location.pathname}${location.search}`) navigate(path);
		noteVisit({ isOnTheWay: false, page: path });
	}, [isOnTheWay, path]);
	// The run goes on meanwhile, and its newest diff may now be on another page than the one that was opened.
	const wanted = page ?? path;
	return isOnTheWay || wanted == null || isPageOf(wanted, pathname);
}
