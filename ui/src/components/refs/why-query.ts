import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";

/** Why a thing is there: its cause, the cause of that, and so on up to a person. */
export const whyQuery = (ref: string) =>
	queryOptions({
		queryKey: keys.why(ref),
		queryFn: ({ signal }) => answer(api.GET("/v1/refs/{ref}/why", { params: { path: { ref } }, signal })),
	});
