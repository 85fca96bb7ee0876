import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";

/** All open approvals; the items of the inbox name them by id. */
export const approvalsQuery = () =>
	queryOptions({
		queryKey: keys.approvals(),
		queryFn: async ({ signal }) => (await answer(api.GET("/api/approvals", { signal }))).approvals,
	});
