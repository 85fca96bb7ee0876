import type { components } from "@turnkeep/client/http/openapi";

/** A shape of the API by its name in `openapi.json`: `Schema<"RunView">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];
