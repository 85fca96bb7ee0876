/** What the search finds of the tour; nothing on a server that is no demo. */

import { useStore } from "zustand";
import { TOUR_STEPS } from "../../model/tour";
import { stepNumber } from "../../model/tour-progress";
import type { FoundItem } from "../useSearchItems";
import { resumeTour, startTour, tourStore } from "./tour-store";

export function useTourItems(): FoundItem[] {
	const progress = useStore(tourStore, (state) => state.progress);
	if (progress === null) return [];
	const start: FoundItem = {
		id: "tour-start",
		group: "Actions",
		label: "Start the tour",
		detail: "from its first step",
		does: { kind: "run", run: startTour },
	};
	const number = stepNumber(progress.step);
	if (progress.isOpen || number === 1) return [start];
	const resume: FoundItem = {
		id: "tour-resume",
		group: "Actions",
		label: "Resume the tour",
		detail: `at step ${number} of ${TOUR_STEPS.length}`,
		does: { kind: "run", run: resumeTour },
	};
	return [resume, start];
}
