/**
 * The route table: every screen with its URL, on one page.
 *
 * The first pattern that fits wins, so fixed words stand above parameters. A screen is a default export and gets its
 * parameters as `params`; the compiler checks their names against the pattern. Each screen is a chunk of its own.
 */

import { type LazyExoticComponent, lazy, type ReactNode } from "react";
import { loadPart } from "../api/load-part";
import { matchPath, type ParamsOf } from "./match";
import type { PlaceId } from "./places";

type AnyParams = Readonly<Record<string, string>>;
type ScreenComponent<Params> = (props: { readonly params: Params }) => ReactNode;

export interface Route {
	readonly pattern: string;
	/** The place of the rail that it belongs to. */
	readonly place: PlaceId | null;
	readonly Screen: LazyExoticComponent<ScreenComponent<AnyParams>>;
	/** Parameters whose change keeps the screen mounted. A change of any other one mounts it anew, with fresh state. */
	readonly keeps: readonly string[];
}

/** A screen in a chunk of its own. */
function screen<Params>(load: () => Promise<{ readonly default: ScreenComponent<Params> }>) {
	return lazy(() => loadPart(load));
}

function route<Pattern extends string>(
	place: PlaceId | null,
	pattern: Pattern,
	Screen: LazyExoticComponent<ScreenComponent<ParamsOf<Pattern>>>,
	keeps: readonly string[] = [],
): Route {
	// The parameters come from `matchPath`, which makes exactly those of the pattern.
	return { pattern, place, Screen: Screen as unknown as Route["Screen"], keeps };
}

const InboxScreen = screen(() => import("../features/inbox/InboxScreen"));
const RunsScreen = screen(() => import("../features/runs/RunsScreen"));
const NewRunScreen = screen(() => import("../features/runs/NewRunScreen"));
const RunScreen = screen(() => import("../features/runs/RunScreen"));
const AgentScreen = screen(() => import("../features/runs/AgentScreen"));
const AgentTurnScreen = screen(() => import("../features/runs/AgentTurnScreen"));
const EdgeScreen = screen(() => import("../features/runs/EdgeScreen"));
const ChangesScreen = screen(() => import("../features/runs/ChangesScreen"));
const RunWhyScreen = screen(() => import("../features/runs/RunWhyScreen"));
const ReplayScreen = screen(() => import("../features/runs/ReplayScreen"));
const SessionsScreen = screen(() => import("../features/sessions/SessionsScreen"));
const SessionScreen = screen(() => import("../features/sessions/SessionScreen"));
const CapturedTurnScreen = screen(() => import("../features/sessions/CapturedTurnScreen"));
const LedgersScreen = screen(() => import("../features/ledgers/LedgersScreen"));
const LedgerScreen = screen(() => import("../features/ledgers/LedgerScreen"));
const LedgerSearchScreen = screen(() => import("../features/ledgers/LedgerSearchScreen"));
const EntryScreen = screen(() => import("../features/ledgers/EntryScreen"));
const PeopleScreen = screen(() => import("../features/ledgers/PeopleScreen"));
const PersonScreen = screen(() => import("../features/ledgers/PersonScreen"));
const HistoriesScreen = screen(() => import("../features/history/HistoriesScreen"));
const CompareScreen = screen(() => import("../features/history/CompareScreen"));
const HistoryScreen = screen(() => import("../features/history/HistoryScreen"));
const BlobScreen = screen(() => import("../features/history/BlobScreen"));
const HealthScreen = screen(() => import("../features/system/HealthScreen"));
const ProvidersScreen = screen(() => import("../features/system/ProvidersScreen"));
const RolesScreen = screen(() => import("../features/system/RolesScreen"));
const TeamsScreen = screen(() => import("../features/system/TeamsScreen"));
const TypesScreen = screen(() => import("../features/system/TypesScreen"));
const TokensScreen = screen(() => import("../features/system/TokensScreen"));
const SettingsScreen = screen(() => import("../features/system/SettingsScreen"));
const AuditScreen = screen(() => import("../features/system/AuditScreen"));
const AboutScreen = screen(() => import("../features/system/AboutScreen"));
const GoScreen = screen(() => import("./GoScreen"));
const SignInScreen = screen(() => import("./SignInScreen"));

export const ROUTES: readonly Route[] = [
	route("inbox", "/", InboxScreen),

	route("runs", "/runs", RunsScreen),
	route("runs", "/runs/new", NewRunScreen),
	route("runs", "/runs/:run", RunScreen),
	route("runs", "/runs/:run/agents/:node", AgentScreen, ["tab"]),
	route("runs", "/runs/:run/agents/:node/:tab", AgentScreen, ["tab"]),
	route("runs", "/runs/:run/turns/:turn", AgentTurnScreen),
	route("runs", "/runs/:run/edges/:edge", EdgeScreen),
	route("runs", "/runs/:run/changes", ChangesScreen),
	route("runs", "/runs/:run/why", RunWhyScreen),
	route("runs", "/runs/:run/replay", ReplayScreen),

	route("sessions", "/sessions", SessionsScreen),
	route("sessions", "/sessions/:session", SessionScreen),
	route("sessions", "/sessions/:session/turns/:seq", CapturedTurnScreen),

	route("ledgers", "/ledgers", LedgersScreen),
	route("ledgers", "/ledgers/:world", LedgerScreen),
	route("ledgers", "/ledgers/:world/search", LedgerSearchScreen),
	route("ledgers", "/ledgers/:world/entries/:entry", EntryScreen),
	route("ledgers", "/ledgers/:world/people", PeopleScreen),
	route("ledgers", "/ledgers/:world/people/:person", PersonScreen),

	route("history", "/history", HistoriesScreen),
	route("history", "/history/compare", CompareScreen),
	route("history", "/history/:context", HistoryScreen, ["turn"]),
	route("history", "/history/:context/turns/:turn", HistoryScreen, ["turn"]),
	route("history", "/blobs/:hash", BlobScreen),

	route("system", "/system", HealthScreen),
	route("system", "/system/health", HealthScreen),
	route("system", "/system/providers", ProvidersScreen),
	route("system", "/system/roles", RolesScreen),
	route("system", "/system/teams", TeamsScreen),
	route("system", "/system/types", TypesScreen),
	route("system", "/system/tokens", TokensScreen),
	route("system", "/system/settings", SettingsScreen),
	route("system", "/system/audit", AuditScreen),
	route("system", "/system/about", AboutScreen),

	route(null, "/go/:ref", GoScreen),
	route(null, "/signin", SignInScreen),
];

export interface MatchedRoute {
	readonly route: Route;
	readonly params: AnyParams;
}

/** The route of a path; null if there is no such page. */
export function findRoute(path: string): MatchedRoute | null {
	for (const route of ROUTES) {
		const params = matchPath<string>(route.pattern, path);
		if (params !== null) return { route, params: params as AnyParams };
	}
	return null;
}

/** What a screen is mounted for: another key is another mount. */
export function mountKey({ route, params }: MatchedRoute): string {
	const kept = Object.entries(params).filter(([name]) => !route.keeps.includes(name));
	const [first] = ROUTES.filter((each) => each.Screen === route.Screen);
	return JSON.stringify([first?.pattern, kept]);
}
