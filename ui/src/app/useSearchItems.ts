/** Everything that the search dialog can find. Lists are fetched when it opens; what a server does not have is left out. */

import { useQuery } from "@tanstack/react-query";
import { setPreferences } from "../api/preferences";
import { sessionsQuery, typesQuery, wholeRunsQuery, worldsQuery } from "../api/queries";
import { formatRef, type Ref, refKindWord } from "../model/refs";
import type { Schema } from "../model/schema";
import type { SearchItem, SearchQuery } from "../model/search";
import type { Session } from "../model/session";
import { firstLine } from "../model/text-safety";
import { pathOfRef, paths, SYSTEM_PAGES } from "./paths";
import { PLACES } from "./places";
import { useTourItems } from "./tour/useTourItems";

export interface FoundItem extends SearchItem {
	readonly does: { readonly kind: "open"; readonly path: string } | { readonly kind: "run"; readonly run: () => void };
}

const open = (path: string) => ({ kind: "open", path }) as const;

const ACTIONS: readonly FoundItem[] = [
	{ id: "new-run", group: "Actions", label: "Start a run", does: open(paths.newRun()) },
	...PLACES.map((place): FoundItem => {
		return { id: `go-${place.id}`, group: "Actions", label: `Go to ${place.label}`, does: open(place.path) };
	}),
	...SYSTEM_PAGES.map((page): FoundItem => {
		return { id: `system-${page}`, group: "Actions", label: `System: ${page}`, does: open(paths.system(page)) };
	}),
	...(["system", "light", "dark"] as const).map((theme): FoundItem => {
		const run = () => setPreferences({ theme });
		return { id: `theme-${theme}`, group: "Actions", label: `Theme: ${theme}`, does: { kind: "run", run } };
	}),
];

/** All items, with those that the text names directly. */
export function useSearchItems(query: SearchQuery): FoundItem[] {
	const { data: runs = [] } = useQuery(wholeRunsQuery());
	const { data: sessions } = useQuery(sessionsQuery());
	const { data: worlds = [] } = useQuery(worldsQuery());
	const { data: types = [] } = useQuery(typesQuery());
	const tour = useTourItems();
	return [
		...query.refs.map(openItem),
		...tour,
		...ACTIONS,
		...runs.flatMap(runItems),
		...(sessions ?? []).map(sessionItem),
		...worlds.flatMap(worldItems),
		...types.map(typeItem),
	];
}

function openItem(ref: Ref): FoundItem {
	const label = `Open ${refKindWord(ref.kind)} ${formatRef(ref)}`;
	return { id: formatRef(ref), group: "Open", label, does: open(pathOfRef(ref)) };
}

function runItems(run: Schema<"RunView">): FoundItem[] {
	const title = firstLine(run.title);
	const agents = Object.values(run.nodes).map((node): FoundItem => {
		const detail = `${node.alias ?? ""} ${node.roleTemplate} · ${title}`.trim();
		const path = paths.agent(run.id, node.id);
		return { id: `node:${node.id}`, group: "Agents", label: firstLine(node.label), detail, does: open(path) };
	});
	const detail = firstLine(`${run.status} · ${run.cwd ?? ""}`);
	return [{ id: `run:${run.id}`, group: "Runs", label: title, detail, does: open(paths.run(run.id)) }, ...agents];
}

function sessionItem(session: Session): FoundItem {
	const label = firstLine(session.name ?? session.session.slice(0, 8));
	const detail = firstLine(`${session.preset ?? ""} ${session.preview ?? ""}`.trim());
	return { id: session.session, group: "Sessions", label, detail, does: open(paths.session(session.session)) };
}

function worldItems(world: Schema<"World">): FoundItem[] {
	const name = world.world_id;
	const people = world.persons.map((person): FoundItem => {
		const detail = `${person.display_label ?? ""} · ${name}`;
		const path = paths.person(name, person.person_id);
		return {
			id: `person:${name}/${person.person_id}`,
			group: "People",
			label: person.person_id,
			detail,
			does: open(path),
		};
	});
	return [{ id: `world:${name}`, group: "Ledgers", label: name, does: open(paths.ledger(name)) }, ...people];
}

function typeItem({ type_id }: Schema<"TypeSummary">): FoundItem {
	return { id: `type:${type_id}`, group: "Types", label: type_id, does: open(paths.system("types", { id: type_id })) };
}
