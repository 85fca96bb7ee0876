import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";

/** One version of a type. Labels of its enums may still be added, so it is not kept for ever. */
export const typeVersionQuery = (id: string, version: number) =>
	queryOptions({
		queryKey: keys.registry("type", id, version),
		queryFn: ({ signal }) => {
			const path = { type_id: id, type_version: version };
			return answer(api.GET("/v1/registry/types/{type_id}/versions/{type_version}", { params: { path }, signal }));
		},
	});
