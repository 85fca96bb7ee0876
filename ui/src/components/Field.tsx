/** Form fields: a label, the control, a hint and an error, tied together for assistive technology. */

import { type ComponentProps, type ReactNode, useId } from "react";
import css from "./Field.module.css";

interface FieldFrame {
	readonly label: string;
	readonly hint?: ReactNode;
	/** What is wrong with the value. */
	readonly error?: string | null;
}

interface ControlIds {
	readonly id: string;
	readonly "aria-describedby": string | undefined;
	readonly "aria-invalid": true | undefined;
}

/** The frame of any control: `<Field label="Folder">{(ids) => <input {...ids} />}</Field>`. */
export function Field({
	label,
	hint,
	error = null,
	children,
}: FieldFrame & { readonly children: (ids: ControlIds) => ReactNode }) {
	const id = useId();
	const hintId = `${id}-hint`;
	const isDescribed = hint !== undefined || error !== null;
	return (
		<div className={css.field}>
			<label htmlFor={id}>{label}</label>
			{children({
				id,
				"aria-describedby": isDescribed ? hintId : undefined,
				"aria-invalid": error !== null || undefined,
			})}
			{isDescribed && (
				<p id={hintId} className={error === null ? css.hint : css.error}>
					{error ?? hint}
				</p>
			)}
		</div>
	);
}

export function TextField({ label, hint, error = null, ...input }: FieldFrame & ComponentProps<"input">) {
	return (
		<Field label={label} hint={hint} error={error}>
			{(ids) => <input type="text" {...input} {...ids} className={css.control} />}
		</Field>
	);
}

export function TextArea({ label, hint, error = null, ...area }: FieldFrame & ComponentProps<"textarea">) {
	return (
		<Field label={label} hint={hint} error={error}>
			{(ids) => <textarea rows={4} {...area} {...ids} className={css.control} />}
		</Field>
	);
}

export interface SelectFieldProps<Value extends string> extends FieldFrame {
	readonly value: Value;
	readonly options: readonly { readonly value: Value; readonly label: string }[];
	readonly onChange: (value: Value) => void;
}

export function SelectField<Value extends string>({
	label,
	hint,
	error = null,
	value,
	options,
	onChange,
}: SelectFieldProps<Value>) {
	const choose = (chosen: string) => {
		const option = options.find((each) => each.value === chosen);
		if (option !== undefined) onChange(option.value);
	};
	return (
		<Field label={label} hint={hint} error={error}>
			{(ids) => (
				<select {...ids} className={css.control} value={value} onChange={(event) => choose(event.target.value)}>
					{options.map((option) => (
						<option key={option.value} value={option.value}>
							{option.label}
						</option>
					))}
				</select>
			)}
		</Field>
	);
}

export interface CheckboxProps {
	readonly label: ReactNode;
	readonly isOn: boolean;
	readonly onChange: (isOn: boolean) => void;
}

export function Checkbox({ label, isOn, onChange }: CheckboxProps) {
	return (
		<label className={css.check}>
			<input type="checkbox" checked={isOn} onChange={(event) => onChange(event.target.checked)} />
			<span>{label}</span>
		</label>
	);
}
