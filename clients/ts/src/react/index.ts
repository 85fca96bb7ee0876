/** `@turnkeep/client/react`: hooks over the gateway. */

export { TurnkeepProvider } from "./provider.js";
export type { ResourceState } from "./resource.js";
export type { TurnLogState, UseTurnsOptions } from "./turn-log.js";
export { useContextInfo } from "./use-context-info.js";
export { type UseTurns, useTurns } from "./use-turns.js";
export { useTypeDescriptor } from "./use-type-descriptor.js";
