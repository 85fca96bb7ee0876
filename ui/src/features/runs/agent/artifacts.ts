/** The bytes of artifacts. An artifact never changes, so what was fetched once is kept. */

import { skipToken, type UseQueryResult, useQueries, useQuery } from "@tanstack/react-query";
import { request } from "../../../api/http";
import { parseDiff } from "../../../model/diff";
import type { DiffStep } from "../../../model/diff-compose";
import type { Artifact } from "../../../model/run";

/** More is not shown in the page; the download has all of it. */
const SHOWN_BYTES_MAX = 4 << 20;

export type ArtifactId = Pick<Artifact, "id" | "runId">;

/** Where the bytes of an artifact are, as the server sends them for download. */
export function artifactUrl({ runId, id }: ArtifactId): string {
	return `/api/runs/${encodeURIComponent(runId)}/artifacts/${encodeURIComponent(id)}?raw=1`;
}

async function fetchText(artifact: ArtifactId, signal: AbortSignal): Promise<string> {
	const response = await request(artifactUrl(artifact), { signal });
	const bytes = new Uint8Array(await response.arrayBuffer());
	return new TextDecoder().decode(bytes.subarray(0, SHOWN_BYTES_MAX));
}

// Not under the key of the run: a notice about it must not fetch what cannot have changed.
const textKey = (artifact: ArtifactId) => ["artifact", artifact.id, "text"];

/** The text of an artifact; nothing is fetched for null. */
export function useArtifactText(artifact: ArtifactId | null): UseQueryResult<string> {
	return useQuery({
		queryKey: artifact === null ? ["artifact", "none"] : textKey(artifact),
		queryFn: artifact === null ? skipToken : ({ signal }) => fetchText(artifact, signal),
		staleTime: Number.POSITIVE_INFINITY,
	});
}

export interface FetchedDiffs {
	readonly steps: readonly DiffStep[];
	readonly isPending: boolean;
	readonly error: unknown;
	readonly retry: () => void;
}

/** Several diffs, read, in the order in which they are given. */
export function useDiffs(artifacts: readonly Artifact[]): FetchedDiffs {
	return useQueries({
		queries: artifacts.map((artifact) => ({
			queryKey: [...textKey(artifact), "diff"],
			queryFn: async ({ signal }: { signal: AbortSignal }): Promise<DiffStep> => ({
				id: artifact.id,
				files: artifact.bytes === 0 ? [] : parseDiff(await fetchText(artifact, signal)),
			}),
			staleTime: Number.POSITIVE_INFINITY,
		})),
		combine: (results) => ({
			steps: results.flatMap(({ data }) => data ?? []),
			isPending: results.some(({ isPending }) => isPending),
			error: results.find(({ error }) => error !== null)?.error ?? null,
			retry: () => {
				for (const result of results) if (result.error !== null) void result.refetch();
			},
		}),
	});
}
