/** The card of a step: its words, and the buttons to go on, back and out. It is not a dialog: the page stays usable. */

import { type Ref, useId } from "react";
import { usePreferences } from "../../api/preferences";
import { Button, IconButton } from "../../components/Button";
import { type StepStatus, type StepWords, TOUR_STEPS, type TourStep } from "../../model/tour";
import { nextStep, stepNumber } from "../../model/tour-progress";
import css from "./Tour.module.css";
import { goOn, goToStep, leaveTour } from "./tour-store";

interface TourCardProps {
	readonly step: TourStep;
	readonly words: StepWords;
	readonly status: StepStatus;
	readonly ref: Ref<HTMLElement>;
	readonly titleRef: Ref<HTMLHeadingElement>;
	/** Puts the focus on the target. */
	readonly onGoToTarget: () => void;
	/** Opens the page of the step again. */
	readonly onOpenPage: () => void;
}

export function TourCard({ step, words, status, ref, titleRef, onGoToTarget, onOpenPage }: TourCardProps) {
	const id = useId();
	const { letters } = usePreferences();
	const before = nextStep(step, -1);
	// While the act is still to be done, it is the main thing to do, and not Next.
	const isNextFirst = words.done === null || status === "done" || status === "missing";
	return (
		<section ref={ref} aria-labelledby={`${id}-title`} className={css.card}>
			<header className={css.head}>
				<h2 id={`${id}-title`} ref={titleRef} tabIndex={-1} aria-describedby={`${id}-text`} className={css.title}>
					{words.title}{" "}
					<span className={css.count}>
						Tour, {stepNumber(step)} of {TOUR_STEPS.length}
					</span>
				</h2>
				<IconButton label="Leave the tour" icon="close" onClick={leaveTour} />
			</header>
			<div id={`${id}-text`} className={css.text}>
				<StepText words={words} status={status} />
			</div>
			<div className={css.actions}>
				<Button look={isNextFirst ? "primary" : "plain"} onClick={() => goOn(step)}>
					{nextStep(step, 1) === null ? "Finish" : "Next"}
				</Button>
				{before !== null && <Button onClick={() => goToStep(before)}>Back</Button>}
				{status === "open" && <Button look="quiet" onClick={onGoToTarget}>{`Go to ${words.target}`}</Button>}
				{status === "elsewhere" && <Button onClick={onOpenPage}>Open its page</Button>}
			</div>
			<p className={css.keys}>
				<kbd>Esc</kbd> leaves the tour.
				{letters && status === "open" && (
					<>
						{" "}
						<kbd>t</kbd> goes from this card to {words.target} and back.
					</>
				)}
			</p>
		</section>
	);
}

function StepText({ words, status }: Pick<TourCardProps, "words" | "status">) {
	switch (status) {
		case "open":
		case "looking":
			return <p>{words.text}</p>;
		case "missing":
			return <p>{words.missing} Go on with the next step.</p>;
		case "elsewhere":
			return <p>This step is on another page.</p>;
		case "done":
			return (
				<p>
					<span className={css.done}>✓ Done.</span> {words.done}
				</p>
			);
	}
}
