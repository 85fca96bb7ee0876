import type { ProxyOptions } from "vite";

/** What the server answers itself. Every other path is a screen of the UI. */
const SERVER_PATHS = ["/api", "/v1", "/ws", "/healthz", "/metrics", "/openapi.json"];

/**
 * Passes requests of a development server on to a Turnkeep server.
 *
 * A Turnkeep server accepts its own host and origin only, so both headers are rewritten to the target's.
 */
export function serverProxy(target: string, token: string | undefined): Record<string, ProxyOptions> {
	const options: ProxyOptions = {
		target,
		changeOrigin: true,
		ws: true,
		headers: { origin: target, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
	};
	return Object.fromEntries(SERVER_PATHS.map((path) => [path, options]));
}
