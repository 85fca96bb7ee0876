import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";

/** The numbers of the server since its start. */
export const statsQuery = () =>
	queryOptions({
		queryKey: keys.system("stats"),
		queryFn: ({ signal }) => answer(api.GET("/v1/stats", { signal })),
	});
