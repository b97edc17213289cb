// The focus of the keyboard on the lanes, also of a view that is opened at this moment.

/** Frames in which a view is drawn, with room to spare. */
const MOST_FRAMES = 120;

/** The lanes that are shown. @returns {HTMLElement | null} */
export const lanesShown = () => document.querySelector(".lanes [tabindex]");

/** Puts the focus on the lanes once they are drawn. @param {FocusOptions} [options] @param {number} [frames] left to wait for them */
export function focusLanes(options, frames = MOST_FRAMES) {
  const found = lanesShown();
  if (found) found.focus(options);
  else if (frames) requestAnimationFrame(() => focusLanes(options, frames - 1));
}
