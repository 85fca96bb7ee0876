/** A context's head and labels, live. */

import { useMemo, useSyncExternalStore } from "react";
import type { ContextId } from "../http/ids.js";
import type { Context } from "../http/resources.js";
import { useTurnkeep } from "./provider.js";
import { Resource, type ResourceState } from "./resource.js";

/** A context, fetched again whenever something happens in it. A change of labels alone is no event. */
export function useContextInfo(contextId: ContextId): ResourceState<Context> {
	const { client, hub } = useTurnkeep();
	const info = useMemo(
		() =>
			new Resource<Context>(
				(signal) => client.context(contextId, { signal }),
				(refresh, fail, signal) =>
					hub.watch(contextId, { onOpen: refresh, onClose: () => undefined, onEvent: refresh, onError: fail }, signal),
			),
		[client, hub, contextId],
	);
	return useSyncExternalStore(info.subscribe, info.snapshot, info.snapshot);
}
