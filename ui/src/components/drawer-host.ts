/** Where drawers are shown. The shell sets the element; `Drawer` renders into it. */

import { createStore } from "zustand/vanilla";

export const drawerHost = createStore<{ readonly element: HTMLElement | null }>(() => ({ element: null }));
