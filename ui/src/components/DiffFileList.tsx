/** The files of a diff, to jump to one. */

import type { DiffFile } from "../model/diff";
import { cx } from "./cx";
import css from "./DiffView.module.css";
import { SafeText } from "./SafeText";

export interface DiffFileListProps {
	readonly files: readonly DiffFile[];
	readonly current: string | null;
	readonly onChoose: (path: string) => void;
}

export function DiffFileList({ files, current, onChoose }: DiffFileListProps) {
	return (
		<nav aria-label="Changed files" className={css.tree}>
			<ul>
				{files.map((file) => {
					const at = file.path.lastIndexOf("/") + 1;
					return (
						<li key={file.path}>
							<button
								type="button"
								className={cx(css.treeFile, file.path === current && css.treeCurrent)}
								onClick={() => onChoose(file.path)}
							>
								<span className={css.folder}>
									<SafeText text={file.path.slice(0, at)} />
								</span>
								<SafeText text={file.path.slice(at)} />
							</button>
						</li>
					);
				})}
			</ul>
		</nav>
	);
}
