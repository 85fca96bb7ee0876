/** A type's descriptor from the registry. */

import { useMemo, useSyncExternalStore } from "react";
import type { TypeDescriptor } from "../http/resources.js";
import { useTurnkeep } from "./provider.js";
import { Resource, type ResourceState } from "./resource.js";

/** A type at one version. Fetched once per mount; the client revalidates its copy by ETag. */
export function useTypeDescriptor(typeId: string, typeVersion: number): ResourceState<TypeDescriptor> {
	const { client } = useTurnkeep();
	const descriptor = useMemo(
		() => new Resource<TypeDescriptor>((signal) => client.typeDescriptor(typeId, typeVersion, { signal })),
		[client, typeId, typeVersion],
	);
	return useSyncExternalStore(descriptor.subscribe, descriptor.snapshot, descriptor.snapshot);
}
