// Where the page shows the answer to each question.

/** View -> the questions whose answers it shows, in its order. @type {Record<string, string[]>} */
export const QUESTIONS = {
  overview: ["devices"],
  idle: ["idle", "idle_ops", "idle_gaps"],
  kernels: ["kernels", "tensor_cores", "occupancy"],
  ops: ["ops"],
  backward: ["backward"],
  copies: ["copies"],
  launches: ["launches", "calls", "queue", "launch_delays", "annotation_times"],
  streams: ["streams", "concurrency", "overlap"],
  graphs: ["graphs"],
  "critical-path": ["critical_path"],
  steps: ["steps"],
  compare: ["compare"],
  ranks: ["ranks"],
  memory: ["memory", "memory_growth"],
  trust: ["tracing_cost", "code_loading", "ledger"],
};

/** The view with the answers to all other questions. */
export const OTHERS = "others";

/** The question of an answer. @param {string} key */
export function questionOf(key) {
  return key.split("/")[0];
}

/** The view that shows an answer. @param {string} key */
export function viewOf(key) {
  return Object.keys(QUESTIONS).find((view) => QUESTIONS[view].includes(questionOf(key))) ?? OTHERS;
}
