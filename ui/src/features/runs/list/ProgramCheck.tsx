/** Which agent programs the server finds, and whether they are logged in. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { providersQuery } from "../../../api/queries";
import { paths } from "../../../app/paths";
import { ErrorNote } from "../../../components/ErrorNote";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import { StateWord } from "../../../components/StateWord";
import type { Schema } from "../../../model/schema";
import css from "./List.module.css";

export function ProgramCheck() {
	const { data, error, isPending, refetch } = useQuery(providersQuery());
	const first = data?.find(({ found }) => found);
	return (
		<section className={css.programs} aria-label="Programs">
			<h2>Programs</h2>
			{isPending && <Skeleton lines={3} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			<ul>
				{data?.map((program) => (
					<li key={program.name}>
						<code>
							<SafeText text={program.name} />
						</code>
						<ProgramState program={program} />
					</li>
				))}
			</ul>
			{data !== undefined && (
				<p className={css.soft}>
					{first === undefined ? (
						"No program was found: agents cannot work until one is installed. "
					) : (
						<>
							Agents that name no program run on <SafeText text={first.name} />.{" "}
						</>
					)}
					<Link href={paths.system("providers")}>All about programs</Link>
				</p>
			)}
		</section>
	);
}

function ProgramState({ program }: { readonly program: Schema<"ProviderHealth"> }) {
	const hint = program.hint == null ? null : <SafeText text={program.hint} />;
	if (!program.found) {
		return (
			<StateWord tone="neutral" word="not found">
				{hint ?? "it is not on the server’s machine"}
			</StateWord>
		);
	}
	if (program.loggedIn === false) {
		return (
			<StateWord tone="waiting" word="not logged in">
				{hint ?? "log in with the program itself"}
			</StateWord>
		);
	}
	return (
		<StateWord tone="done" word={program.loggedIn === true ? "logged in" : "found"}>
			<SafeText text={program.version ?? program.path ?? "its version is unknown"} />
		</StateWord>
	);
}
