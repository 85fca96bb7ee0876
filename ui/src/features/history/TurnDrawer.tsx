/** One turn beside the graph: what is known about it, its payload in any form, and a fork from here. */

import { useState } from "react";
import { useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../api/connection";
import { ApiError, isNotFound } from "../../api/errors";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { CopyButton } from "../../components/CopyButton";
import { Drawer } from "../../components/Drawer";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { Segments } from "../../components/Tabs";
import { useQueryParam } from "../../components/useQueryParam";
import { ForkDialog } from "./ForkDialog";
import css from "./History.module.css";
import { RenderOptions } from "./RenderOptions";
import { readView, turnQuery, VIEWS } from "./render-options";
import { TurnFacts } from "./TurnFacts";
import { TurnPayload } from "./TurnPayload";
import { type TurnPlace, useTurn } from "./useTurn";

export interface TurnDrawerProps {
	readonly context: string;
	readonly turn: string;
	/** Where the turn stands; null if it is not among those that are shown. */
	readonly place: TurnPlace | null;
}

export function TurnDrawer({ context, turn, place }: TurnDrawerProps) {
	const search = useSearch();
	const [viewParam, setView] = useQueryParam("view");
	const view = readView(viewParam);
	const { data, error, isPending, refetch } = useTurn(turn, place, turnQuery(new URLSearchParams(search), view));
	const close = () => navigate(`${paths.history(context)}${search === "" ? "" : `?${search}`}`);
	return (
		<Drawer title={`Turn ${turn}`} onClose={close} actions={<CopyButton text={`turn:${turn}`} label="Copy the ref" />}>
			<div className={css.tools}>
				<Segments label="Form" value={view} options={VIEWS} onChange={(next) => setView(next)} />
				<ForkButton turn={turn} />
			</div>
			<RenderOptions />
			{isPending && <Skeleton lines={6} />}
			{isNotFound(error) && <p>{`Not found: there is no turn ${turn}.`}</p>}
			{error !== null && !isNotFound(error) && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data?.error !== undefined && (
				<ErrorNote
					context="This turn cannot be shown by its fields; its bytes are below."
					error={new ApiError(data.error.status, data.error.code, data.error.message)}
				/>
			)}
			{data !== undefined && (
				<>
					<TurnPayload turn={data} />
					<TurnFacts turn={data} context={context} />
				</>
			)}
		</Drawer>
	);
}

function ForkButton({ turn }: { readonly turn: string }) {
	const [isForking, setForking] = useState(false);
	const block = useActionBlock();
	return (
		<>
			<Button icon="fork" blocked={block} onClick={() => setForking(true)}>
				Fork from here
			</Button>
			{isForking && <ForkDialog turn={turn} onClose={() => setForking(false)} />}
		</>
	);
}
