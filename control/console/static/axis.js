// Axes of charts over time.

/** ticksOf returns the times, in seconds, at which an axis has ticks: at most a number of them. */
export function ticksOf(start, end, most) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600].find((s) => (end - start) / s <= most) ?? 43200;
  const out = [];
  for (let at = Math.ceil(start / step) * step; at < end; at += step) out.push(at);
  return out;
}

/** clockOf returns the time of day at a number of seconds; unless whole, without the seconds. */
export const clockOf = (seconds, whole = true) => new Date(seconds * 1000).toISOString().slice(11, whole ? 19 : 16) + (whole ? 'Z' : '');

/** at places an element at a share of the width or the height of its parent, or gives it that size. */
export const at = (el, side, share) => { el.style[side] = `${100 * share}%`; return el; };
