/** The things of a demo, and what this browser remembers of its tour. */

import { queryOptions } from "@tanstack/react-query";
import type { Schema } from "../model/schema";
import { readTourDemo, type TourDemo } from "../model/tour-demo";
import { ApiError } from "./errors";
import { answer, api, request } from "./http";
import { keys } from "./keys";

const STORAGE_KEY = "turnkeep.tour";

/** What a demo shows; null on every other server. The answer does not change while the server runs. */
export const demoQuery = () =>
	queryOptions({
		queryKey: keys.system("demo"),
		staleTime: Number.POSITIVE_INFINITY,
		queryFn: async ({ signal }): Promise<TourDemo | null> => {
			try {
				const response = await request("/v1/demo", { signal });
				return readTourDemo(await response.text());
			} catch (error) {
				if (error instanceof ApiError && error.status === 404) return null;
				throw error;
			}
		},
	});

/** A run as it is now; null if it was deleted. Its own key, because other screens treat a missing run as an error. */
export const demoRunQuery = (run: string) =>
	queryOptions({
		queryKey: keys.run(run, "demo"),
		queryFn: async ({ signal }): Promise<Schema<"RunView"> | null> => {
			const path = { run_id: run };
			try {
				return (await answer(api.GET("/api/runs/{run_id}", { params: { path }, signal }))).run;
			} catch (error) {
				if (error instanceof ApiError && error.status === 404) return null;
				throw error;
			}
		},
	});

export function readStoredTour(): string | null {
	try {
		return localStorage.getItem(STORAGE_KEY);
	} catch {
		return null;
	}
}

export function storeTour(text: string): void {
	try {
		localStorage.setItem(STORAGE_KEY, text);
	} catch {
		// A browser that stores nothing remembers the tour until the page is closed.
	}
}
