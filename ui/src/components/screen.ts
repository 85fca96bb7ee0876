/**
 * What every screen gets from its route: `export default function RunScreen({ params }: ScreenProps<"run">)`.
 * `Optional` names parameters that only some of the screen's patterns have.
 */
export interface ScreenProps<Names extends string = never, Optional extends string = never> {
	readonly params: { readonly [Name in Names]: string } & { readonly [Name in Optional]?: string };
}
