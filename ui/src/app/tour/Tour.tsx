/** The tour of a demo. Every other server has none, and nothing of it is shown there. */

import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useRef } from "react";
import { useStore } from "zustand";
import { demoQuery, demoRunQuery } from "../../api/demo";
import { announce } from "../../components/announce";
import { isDialogOpen, useKeys } from "../../components/keys";
import {
	isAboutPage,
	isStepDone,
	type StepStatus,
	type StepWords,
	stepSelectors,
	stepStatus,
	stepWords,
	type TourFacts,
	type TourStep,
} from "../../model/tour";
import type { TourDemo } from "../../model/tour-demo";
import { focusTarget } from "./follow-target";
import { pathOfStep } from "./step-path";
import css from "./Tour.module.css";
import { TourCard } from "./TourCard";
import { enterDemo, goToStep, leaveTour, noteVisit, tourStore } from "./tour-store";
import { useStepPage } from "./useStepPage";
import { type StepTarget, useStepTarget } from "./useStepTarget";
import { useTourFacts } from "./useTourFacts";

export function Tour() {
	const { data: demo } = useQuery(demoQuery());
	const progress = useStore(tourStore, (state) => state.progress);
	useEffect(() => {
		if (demo != null) enterDemo(demo.run);
	}, [demo]);
	if (demo == null || progress === null || progress.run !== demo.run || !progress.isOpen) return null;
	return <OpenTour demo={demo} step={progress.step} />;
}

interface OpenTourProps {
	readonly demo: TourDemo;
	readonly step: TourStep;
}

function OpenTour({ demo, step }: OpenTourProps) {
	const { data: run } = useQuery(demoRunQuery(demo.run));
	const isDone = useIsDone(demo, step, useTourFacts(demo, run));
	const isPageOpen = useStepPage(pathOfStep(step, demo, run));
	// Another page may have something that looks like the target.
	const selectors = isPageOpen || isDone ? stepSelectors(step, demo, isDone) : [];
	const target = useStepTarget(selectors, isAboutPage(step, isDone));
	const status = stepStatus({ isDone, isPageOpen, isTargetShown: target.isShown, isLate: target.isLate });
	const words = stepWords(step, demo);
	const title = useRef<HTMLHeadingElement>(null);
	useNotedTarget(target);
	useAnnouncedStatus(status, words);
	useCardFocus(title);
	useTourKeys(target, title, selectors);
	return (
		<>
			<TourCard
				step={step}
				words={words}
				status={status}
				ref={target.card}
				titleRef={title}
				onGoToTarget={() => focusTarget(selectors)}
				onOpenPage={() => goToStep(step)}
			/>
			<div ref={target.ring} className={css.ring} hidden />
		</>
	);
}

/** What was done once stays done until the step begins again, also when the person goes back to the old view. */
function useIsDone(demo: TourDemo, step: TourStep, facts: TourFacts): boolean {
	const { isDone, isOnTheWay, wasFound } = useStore(tourStore, (state) => state.visit);
	// On the way the facts are those of the page before.
	const isDoneNow = !isOnTheWay && isStepDone(step, demo, facts, wasFound);
	useEffect(() => {
		if (isDoneNow) noteVisit({ isDone: true });
	}, [isDoneNow]);
	return isDone || isDoneNow;
}

function useNotedTarget({ isShown }: StepTarget): void {
	const { isOnTheWay, wasFound } = useStore(tourStore, (state) => state.visit);
	const isNews = isShown && !isOnTheWay && !wasFound;
	useEffect(() => {
		if (isNews) noteVisit({ wasFound: true });
	}, [isNews]);
}

function useAnnouncedStatus(status: StepStatus, words: StepWords): void {
	const { done, missing } = words;
	useEffect(() => {
		if (status === "done" && done !== null) announce(`Done. ${done}`);
		if (status === "missing") announce(missing);
	}, [status, done, missing]);
}

/** A step that the person chose gets the focus. A tour that opens by itself takes it from nobody. */
function useCardFocus(title: RefObject<HTMLElement | null>): void {
	const { focusNumber, isOnTheWay } = useStore(tourStore, (state) => state.visit);
	useEffect(() => {
		if (focusNumber === 0 || isOnTheWay) return;
		// A page that opens puts the focus on its heading in the same moment, and a search that closes puts it back where it
		// was. The card comes after both.
		const focusCard = () => {
			if (isDialogOpen()) frame = requestAnimationFrame(focusCard);
			else title.current?.focus({ preventScroll: true });
		};
		let frame = requestAnimationFrame(focusCard);
		return () => cancelAnimationFrame(frame);
	}, [focusNumber, isOnTheWay, title]);
	useEffect(
		() => () => {
			const isLost = document.activeElement === document.body || document.activeElement === null;
			if (isLost) document.querySelector<HTMLElement>("#main h1")?.focus({ preventScroll: true });
		},
		[],
	);
}

function useTourKeys({ card }: StepTarget, title: RefObject<HTMLElement | null>, selectors: readonly string[]): void {
	const leave = (): undefined => leaveTour() as undefined;
	const change = () => {
		if (card.current?.contains(document.activeElement)) return focusTarget(selectors);
		title.current?.focus();
		return undefined;
	};
	useKeys("Tour", [
		{ key: "t", does: "go from the card of the tour to what it explains, and back", run: change },
		{ key: "Escape", does: "leave the tour", run: leave },
	]);
}
