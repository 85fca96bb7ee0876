/** What the tour knows about the page and the things of the demo. */

import { useEffect, useState } from "react";
import { useSearch } from "wouter";
import { usePathname } from "wouter/use-browser-location";
import { useAttention } from "../../api/waiting";
import { onNotice } from "../../api/window";
import { useExplained } from "../../components/refs/why-store";
import { parseRef } from "../../model/refs";
import type { TourFacts } from "../../model/tour";
import type { TourDemo } from "../../model/tour-demo";
import { matchPath } from "../match";
import { paths } from "../paths";
import type { DemoRun } from "./step-path";

export function useTourFacts(demo: TourDemo, run: DemoRun): TourFacts {
	const { data: items } = useAttention();
	const explained = useExplained();
	const pathname = usePathname();
	const search = useSearch();
	const isOfApproval = (item: NonNullable<typeof items>[number]) =>
		item.kind === "approval" && item.runId === demo.run && item.nodeId === demo.approvalNode;
	const isInLedger = pathname === paths.ledger(demo.world);
	return {
		isApprovalOpen: items === undefined || run === null ? null : items.some(isOfApproval),
		isLineExplained: explained !== null && parseRef(explained)?.kind === "line",
		seenAs: isInLedger ? new URLSearchParams(search).get("as") : null,
		isForkOpen: useIsNewHistoryOpen(pathname),
		isApplied: run == null ? null : Object.values(run.artifacts).some(({ name }) => name === "apply.json"),
	};
}

/** Whether the history on screen was made while the tour was open. */
function useIsNewHistoryOpen(pathname: string): boolean {
	const [made, setMade] = useState<ReadonlySet<string>>(new Set());
	useEffect(
		() =>
			onNotice((notice) => {
				if (notice.kind === "context.created") setMade((before) => new Set([...before, notice.contextId]));
			}),
		[],
	);
	const shown = matchPath("/history/:context", pathname)?.context;
	return shown !== undefined && made.has(shown);
}
