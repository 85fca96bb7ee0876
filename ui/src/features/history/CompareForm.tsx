/** Which two histories are compared. */

import { useQuery } from "@tanstack/react-query";
import { navigate } from "wouter/use-browser-location";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { SelectField } from "../../components/Field";
import { labelWords } from "../../model/history";
import { firstLine } from "../../model/text-safety";
import css from "./History.module.css";

const CHOICES_MAX = 200;

export function CompareForm({ a, b }: { readonly a: string; readonly b: string }) {
	const { data } = useQuery({
		queryKey: keys.contexts("choices"),
		queryFn: ({ signal }) => {
			const query = { limit: CHOICES_MAX, worlds: false } as const;
			return answer(api.GET("/v1/contexts", { params: { query }, signal }));
		},
	});
	const known = (data?.contexts ?? []).map(({ context_id, labels }) => ({
		value: context_id,
		label: `${context_id} ${firstLine(labelWords(labels).join(", "), 50)}`,
	}));
	const options = (id: string) => [
		{ value: "", label: "choose a history" },
		...(id === "" || known.some(({ value }) => value === id) ? [] : [{ value: id, label: id }]),
		...known,
	];
	const choose = (first: string, second: string) => navigate(paths.compare(first, second));
	return (
		<div className={css.form}>
			<SelectField label="History" value={a} options={options(a)} onChange={(next) => choose(next, b)} />
			<SelectField label="and history" value={b} options={options(b)} onChange={(next) => choose(a, next)} />
		</div>
	);
}
