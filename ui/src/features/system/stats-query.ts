import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import type { Schema } from "../../model/schema";

/** The numbers of the server. A server that names its store adds the store's id. */
export type ServerStats = Schema<"Stats"> & { readonly store_id?: string };

export const statsQuery = () =>
	queryOptions({
		queryKey: keys.system("stats"),
		queryFn: ({ signal }): Promise<ServerStats> => answer(api.GET("/v1/stats", { signal })),
	});
