// Answers about a part of a step, from the rows that the file holds: exactly the answers of `collector.analysis.between`.
// Each function is the counterpart of a module of collector/analysis. Names and other texts are taken from the answer about
// the whole step. tests/web/test_part_answers.py compares all of them with Python's answers.
import { ascending, byCodePoints, countWhile, figuresOf, groupedBy, longestFirst, longestOf, longestTimes, lowerMedian, ratio, rowOf, shared } from "./groups.js";
import { backward } from "./backward.js";
import { givenRows, largestPaths } from "./given_rows.js";
import { clipped, gapsBetween, lengthOf, overlap, sweep, timesAlone, timesByNumber, union, without } from "./intervals.js";
import { memoryByOp, memoryByPool } from "./memory.js";
import { growthByOp, growthByStep } from "./memory_growth.js";
import { annotationPathTimes, launchPathsOf, NO_ANNOTATION, ops, pathsOf } from "./ops.js";
import { COMMUNICATION, COMPUTE, COPY, GRAPH, MEMSET } from "./rows.js";
import { within } from "../window.js";
import { lossesOn } from "./losses.js";
import { notesOn } from "./notes.js";

/** @typedef {import("../provider.js").Answer} Answer */
/** @typedef {import("./rows.js").Cut} Cut */
/** @typedef {import("./rows.js").Part} Part */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./rows.js").RowsInfo} RowsInfo */
/** @typedef {import("./groups.js").Row} Row */
/** @typedef {{info: RowsInfo, rows: Rows, cut: Cut, answers: Record<string, Answer>, losses: string[]}} Asked
 * `losses`: those of the step's ledger. */

const KERNEL_GAP_NS = 2000;

/** Start and end of a row. @param {import("./rows.js").Table} table @param {number} row */
function timesOf(table, row) {
  return { start: table.start[row], end: table.start[row] + table.length[row] };
}

/** Devices in order, each with its activities of the part in order. @param {Asked} asked @returns {[number, number[]][]} */
function byDevice({ info, rows: { work }, cut }) {
  return [...groupedBy(cut.work, (row) => info.streams[work.stream[row]][0])].sort((one, other) => one[0] - other[0]);
}

/** Devices in order, each with its activities of the part; one that works in another part of the step has none.
 * @param {Asked} asked @returns {[number, number[]][]} */
function allDevices(asked) {
  const found = new Map(byDevice(asked));
  return asked.info.devices.map((device) => [device, found.get(device) ?? []]);
}

/** For each device the times of each set of classes and of each number of activities that ran at once.
 * @param {Asked} asked */
function deviceTimes(asked) {
  const { rows: { work }, cut: { part } } = asked;
  return allDevices(asked).map(([device, own]) => {
    const byClasses = new Array(1 << (GRAPH + 1)).fill(0);
    /** @type {number[]} */
    const byNumber = [part.end - part.start];
    sweep(own.map((row) => clipped({ ...timesOf(work, row), tag: work.work_class[row] }, part)), (length, running) => {
      let [classes, number] = [0, 0];
      for (const [each, count] of running) {
        classes |= 1 << each;
        number += count;
      }
      byClasses[classes] += length;
      while (byNumber.length <= number) byNumber.push(0);
      byNumber[number] += length;
      byNumber[0] -= length;
    });
    /** @param {number[]} wanted @param {number[]} [unwanted] */
    const ran = (wanted, unwanted = []) => byClasses.reduce((sum, length, classes) =>
      (wanted.every((each) => classes & (1 << each)) && !unwanted.some((each) => classes & (1 << each)) ? sum + length : sum), 0);
    return { device, own, byNumber, ran, window: part.end - part.start, busy: part.end - part.start - byNumber[0] };
  });
}

/** The times in which each class ran and none that hides it. @param {(wanted: number[], unwanted?: number[]) => number} ran */
function exposed(ran) {
  return {
    exposed_graph_ns: ran([GRAPH], [COMPUTE]),
    exposed_communication_ns: ran([COMMUNICATION], [COMPUTE, GRAPH]),
    exposed_copy_ns: ran([COPY], [COMPUTE, GRAPH, COMMUNICATION]),
    exposed_memset_ns: ran([MEMSET], [COMPUTE, GRAPH, COMMUNICATION, COPY]),
  };
}

/** @param {Answer} _ @param {Asked} asked */
function devices(_, asked) {
  return deviceTimes(asked).map(({ device, own, byNumber, ran, window, busy }) => ({
    device_id: device,
    window_ns: window,
    busy_ns: busy,
    idle_ns: window - busy,
    busy_share: ratio(busy, window),
    compute_ns: ran([COMPUTE]),
    communication_ns: ran([COMMUNICATION]),
    copy_ns: ran([COPY]),
    memset_ns: ran([MEMSET]),
    graph_ns: ran([GRAPH]),
    overlap_ns: ran([COMPUTE, COMMUNICATION]),
    ...exposed(ran),
    mean_concurrency: ratio(byNumber.reduce((sum, length, number) => sum + length * number, 0), window),
    max_concurrency: byNumber.reduce((most, length, number) => (length ? number : most), 0),
    activities: own.length,
  }));
}

/** @param {Answer} _ @param {Asked} asked */
function concurrency(_, asked) {
  return deviceTimes(asked).flatMap(({ device, byNumber, window, busy }) => byNumber.flatMap((duration, running) => (duration ? [{
    device_id: device, running, duration_ns: duration, share: ratio(duration, window), busy_share: running ? ratio(duration, busy) : 0,
  }] : [])));
}

/** @param {Answer} _ @param {Asked} asked */
function overlapByDevice(_, asked) {
  return deviceTimes(asked).map(({ device, ran, busy }) => {
    const [communication, copy] = [ran([COMMUNICATION]), ran([COPY])];
    const alone = exposed(ran);
    return {
      device_id: device,
      busy_ns: busy,
      compute_ns: ran([COMPUTE]),
      ...alone,
      communication_ns: communication,
      hidden_communication: ratio(communication - alone.exposed_communication_ns, communication),
      copy_ns: copy,
      hidden_copy: ratio(copy - alone.exposed_copy_ns, copy),
      compute_communication_ns: ran([COMPUTE, COMMUNICATION]),
      compute_copy_ns: ran([COMPUTE, COPY]),
      communication_copy_ns: ran([COMMUNICATION, COPY]),
      graph_ns: ran([GRAPH]),
    };
  });
}

/** Rows by their streams, in order. @param {Asked} asked @param {number[]} own @returns {[number, number[]][]} */
function byStream({ rows: { work } }, own) {
  return [...groupedBy(own, (row) => work.stream[row])].sort((one, other) => one[0] - other[0]);
}

/** @param {Asked} asked @param {number} stream */
function streamKeys({ info }, stream) {
  const [device_id, context_id, stream_id, stream_name] = info.streams[stream];
  return { device_id, context_id, stream_id, stream_name };
}

/** Communication by a key of its activities; the rows of each device are in the given order.
 * @param {Asked} asked @param {(row: number) => number} keyOf @param {(key: number) => Row} columnsOf
 * @param {(one: Row, other: Row) => number} order @param {Row} several the key of the time in which several keys communicated at once */
function communication(asked, keyOf, columnsOf, order, several) {
  const { rows: { work }, cut: { part } } = asked;
  const ran = (/** @type {number[]} */ own) => union(own.map((row) => clipped(timesOf(work, row), part)));
  return byDevice(asked).flatMap(([device, all]) => {
    const hiding = ran(all.filter((row) => work.work_class[row] === COMPUTE || work.work_class[row] === GRAPH));
    const collectives = all.filter((row) => work.work_class[row] === COMMUNICATION);
    const groups = [...groupedBy(collectives, keyOf)].map(([key, own]) => {
      const covered = ran(own);
      return { key, kernels: own.length, covered: lengthOf(covered), exposed: without(covered, hiding) };
    });
    const alone = timesAlone(groups.flatMap(({ key, exposed }) => exposed.map((each) => ({ ...each, tag: key }))));
    /** @type {Row[]} */
    const found = groups.map(({ key, kernels, covered, exposed }) => {
      const hidden = covered - lengthOf(exposed);
      return {
        ...columnsOf(key), kernels, communication_ns: covered, hidden_ns: hidden, hidden_communication: ratio(hidden, covered),
        exposed_ns: lengthOf(exposed), exposed_alone_ns: alone.get(key) ?? 0,
      };
    }).sort(order);
    const atOnce = lengthOf(without(ran(collectives), hiding)) - [...alone.values()].reduce((sum, each) => sum + each, 0);
    if (atOnce) {
      found.push({
        ...several, device_id: device, kernels: 0, communication_ns: atOnce, hidden_ns: 0, hidden_communication: 0,
        exposed_ns: atOnce, exposed_alone_ns: atOnce,
      });
    }
    return found;
  });
}

/** @param {Answer} _ @param {Asked} asked */
function overlapByStream(_, asked) {
  return communication(asked, (row) => asked.rows.work.stream[row], (stream) => streamKeys(asked, stream),
    (one, other) => one.context_id - other.context_id || one.stream_id - other.stream_id, { context_id: -1, stream_id: -1, stream_name: "" });
}

/** @param {Answer} whole @param {Asked} asked */
function overlapByGroup(whole, asked) {
  const { info, rows: { work } } = asked;
  const place = info.kind_keys.indexOf("overlap/group");
  return communication(asked, (row) => info.kinds[work.kind[row]][place], (code) => rowOf(whole, code),
    (one, other) => byCodePoints(one.group, other.group), { group: "(several groups)" });
}

/** @param {Answer} _ @param {Asked} asked */
function streams(_, asked) {
  const { rows: { work }, cut: { part } } = asked;
  const within = (/** @type {number} */ row) => clipped(timesOf(work, row), part);
  return byDevice(asked).flatMap(([, all]) => {
    const times = all.map((row) => ({ ...within(row), tag: work.stream[row] }));
    const busy = lengthOf(union(times));
    const alone = timesAlone(times);
    return byStream(asked, all).map(([stream, own]) => {
      const covered = lengthOf(union(own.map(within)));
      const concurrent = covered - (alone.get(stream) ?? 0);
      return {
        ...streamKeys(asked, stream),
        activities: own.length,
        total_ns: own.reduce((sum, row) => sum + work.length[row], 0),
        busy_ns: covered,
        busy_share: ratio(covered, busy),
        alone_ns: covered - concurrent,
        concurrent_ns: concurrent,
        concurrent_share: ratio(concurrent, covered),
      };
    });
  });
}

/** The gaps of each device with their causes, and the rows of the activities that ended them. @param {Asked} asked */
function gaps(asked) {
  const { rows: { work, calls, overheads }, cut } = asked;
  const waiting = cut.calls.filter((row) => calls.waits[row]);
  const tracing = cut.overheads.filter((row) => !overheads.loads[row]);
  return allDevices(asked).map(([device, own]) => {
    const processes = new Set(own.map((row) => work.process[row]).filter(Boolean));
    const waitsOf = waitsByThread(calls, besides(calls, waiting, processes));
    const tracer = union(besides(overheads, tracing, processes).map((row) => timesOf(overheads, row)));
    return { device, gaps: gapsBetween(own.map((row) => timesOf(work, row)), cut.part).map(({ start, end, endedBy }) => {
      const idle = end - start;
      /** @type {Row} */
      const gap = {
        device_id: device, start_ns: start - cut.part.start, end_ns: end - cut.part.start, idle_ns: idle, synchronize_ns: 0, host_ns: 0,
        launch_latency_ns: 0, kernel_gap_ns: 0, dependency_ns: 0, no_launch_ns: 0, tail_ns: 0,
        tracer_ns: coveredBy(tracer, start, end), ended: [],
      };
      // If several activities end the gap at once, the earliest launch counts, of equal ones that of the thread with the
      // smallest number; it is unknown if one of them is unknown.
      let [launched, thread] = [Infinity, 0];
      for (let place = endedBy; place >= 0 && place < own.length && work.start[own[place]] === end; place++) {
        gap.ended.push(own[place]);
        const call = work.call[own[place]];
        const [time, of] = call ? [calls.start[call - 1], calls.thread[call - 1]] : [-Infinity, 0];
        if (time < launched || (time === launched && of < thread)) [launched, thread] = [time, of];
      }
      if (endedBy < 0) gap.tail_ns = idle;
      else if (launched === -Infinity) gap.no_launch_ns = idle;
      else if (launched < start) gap[idle <= KERNEL_GAP_NS ? "kernel_gap_ns" : "dependency_ns"] = idle;
      else {
        const until = Math.min(launched, end);
        gap.synchronize_ns = coveredBy(waitsOf(thread), start, until);
        gap.host_ns = until - start - gap.synchronize_ns;
        gap.launch_latency_ns = end - until;
      }
      return gap;
    }) };
  });
}

/** The rows of these processes, of which there are none if they are not known, and of unknown ones.
 * @param {import("./rows.js").Table} table @param {number[]} rows @param {Set<number>} processes */
function besides(table, rows, processes) {
  return processes.size ? rows.filter((row) => !table.process[row] || processes.has(table.process[row])) : rows;
}

/** Gives the times in which each thread waited (collector/recording/thread_waits.py); 0 is an unknown thread, which may be any.
 * @param {import("./rows.js").Table} calls @param {number[]} rows @returns {(thread: number) => import("./intervals.js").Interval[]} */
function waitsByThread(calls, rows) {
  const byThread = groupedBy(rows, (row) => calls.thread[row]);
  const [unknown, found] = [byThread.get(0) ?? [], new Map()];
  return (thread) => {
    if (!found.has(thread)) {
      const own = thread ? [...unknown, ...(byThread.get(thread) ?? [])] : rows;
      found.set(thread, union(own.map((row) => timesOf(calls, row))));
    }
    return found.get(thread);
  };
}

/** The time between start and end that a union covers. @param {import("./intervals.js").Interval[]} union @param {number} start @param {number} end */
function coveredBy(union, start, end) {
  let covered = 0;
  for (let at = countWhile(union, (each) => each.end <= start); at < union.length && union[at].start < end; at++) {
    covered += Math.min(union[at].end, end) - Math.max(union[at].start, start);
  }
  return covered;
}

/** @param {Answer} whole @param {Asked} asked */
function idle(whole, asked) {
  const { part } = asked.cut;
  return gaps(asked).map(({ device, gaps: own }) => Object.fromEntries(whole.columns.map(({ name }) => [name,
    name === "device_id" ? device : name === "window_ns" ? part.end - part.start : name === "gaps" ? own.length
    : own.reduce((sum, each) => sum + each[name], 0)])));
}

/** @param {Answer} whole @param {Asked} asked */
function idleOps(whole, asked) {
  const launchPathOf = launchPathsOf(asked, pathsOf(asked));
  const pathOf = (/** @type {number[]} */ ended) =>
    ended.map((row) => launchPathOf(row) || NO_ANNOTATION).sort(byCodePoints)[0] ?? NO_ANNOTATION;
  return gaps(asked).flatMap(({ device, gaps: own }) => [...groupedBy(own, (each) => pathOf(each.ended))]
    .map(([path, found]) => /** @type {Row} */ (Object.fromEntries(whole.columns.map(({ name }) => [name,
      name === "device_id" ? device : name === "path" ? path : name === "gaps" ? found.length
      : found.reduce((sum, each) => sum + each[name], 0)]))))
    .sort((one, other) => other.idle_ns - one.idle_ns || byCodePoints(one.path, other.path)));
}

/** @param {Answer} _ @param {Asked} asked */
function idleGaps(_, asked) {
  return gaps(asked).flatMap((each) => each.gaps)
    .sort((one, other) => other.idle_ns - one.idle_ns || one.device_id - other.device_id || one.start_ns - other.start_ns);
}

/** The rows of the answer about the whole step in which activities of the part are counted, each with these activities.
 * @param {Asked} asked @param {string} key @param {(kind: number) => boolean} is whether activities of a class are counted
 * @returns {[number, number[]][]} */
function counted({ info, rows: { work }, cut }, key, is) {
  const place = info.kind_keys.indexOf(key);
  return [...groupedBy(cut.work.filter((row) => is(work.work_class[row])), (row) => info.kinds[work.kind[row]][place])];
}

/** @param {number} work_class */
function isKernel(work_class) {
  return work_class === COMPUTE || work_class === COMMUNICATION;
}

/** Kernels by the key of the answer, with figures of their durations. @param {Answer} whole @param {Asked} asked @param {string} key */
function kernels(whole, asked, key) {
  const { info, rows: { work }, answers } = asked;
  const use = info.kind_keys.indexOf("tensor_cores/use");
  const uses = answers["tensor_cores/use"].values[0];
  const found = counted(asked, key, isKernel).map(([code, own]) => {
    /** @type {Row} */
    const row = { ...rowOf(whole, code), ...figuresOf(own.map((each) => work.length[each])), longest: longestOf(work, own) };
    if (!key.startsWith("kernels/")) return row;
    const stated = new Set(own.map((each) => uses[info.kinds[work.kind[each]][use]]));
    return { ...row, tensor_cores: stated.size === 1 ? [...stated][0] : "unknown" };
  });
  if (key === "tensor_cores/use") return shared(uses.flatMap((each) => found.filter((row) => row.tensor_cores === each)));
  return shared(longestFirst(found, whole.columns.map((each) => each.name)));
}

/** @param {Answer} whole @param {Asked} asked */
function copies(whole, asked) {
  const { info, rows: { work }, cut } = asked;
  const rate = (/** @type {number} */ bytes, /** @type {number} */ time) => (bytes && time ? (bytes * 1e9) / time : null);
  const found = counted(asked, "copies", (each) => each === COPY || each === MEMSET).map(([code, own]) => {
    const row = rowOf(whole, code);
    const known = own.filter((each) => work.bytes[each] > 0);
    const bytes = own.reduce((sum, each) => sum + work.bytes[each], 0);
    const ran = union(own.map((each) => timesOf(work, each)));
    const computing = union(cut.work.filter((each) => work.work_class[each] === COMPUTE && info.streams[work.stream[each]][0] === row.device_id)
      .map((each) => timesOf(work, each)));
    const inPart = union(own.map((each) => clipped(timesOf(work, each), cut.part)));
    const hidden = overlap(inPart, computing);
    return {
      ...row,
      count: own.length,
      unknown_sizes: own.length - known.length,
      num_bytes: bytes,
      total_ns: own.reduce((sum, each) => sum + work.length[each], 0),
      union_ns: lengthOf(ran),
      bandwidth: rate(bytes, known.reduce((sum, each) => sum + work.length[each], 0)),
      union_bandwidth: rate(bytes, lengthOf(union(known.map((each) => timesOf(work, each))))),
      hidden_ns: hidden,
      hidden_share: ratio(hidden, lengthOf(inPart)),
      longest: longestOf(work, own),
    };
  });
  return longestFirst(found, whole.columns.map((each) => each.name));
}

/** @param {Answer} whole @param {Asked} asked */
function calls(whole, { rows: { calls: table }, cut }) {
  const found = [...groupedBy(cut.calls, (row) => table.code[row])].map(([code, own]) => ({
    ...rowOf(whole, code), ...figuresOf(own.map((row) => table.length[row])), errors: own.filter((row) => table.failed[row]).length,
    longest: longestOf(table, own),
  }));
  return longestFirst(found, whole.columns.map((each) => each.name));
}

/** @param {Answer} whole @param {Asked} asked */
function annotationTimes(whole, { rows: { annotations }, cut }) {
  const found = [...groupedBy(cut.annotations, (row) => annotations.code[row])].map(([code, own]) => ({
    ...rowOf(whole, code), ...figuresOf(own.map((row) => annotations.length[row])),
  }));
  return longestFirst(found, whole.columns.map((each) => each.name));
}

/** Activities whose call was recorded, with the row of the call. @param {Asked} asked */
function launched({ rows: { work, calls: table }, cut }) {
  return cut.work.filter((row) => work.call[row]).map((row) => {
    const call = work.call[row] - 1;
    const { start, end } = timesOf(table, call);
    return { row, call, start, api: end - start, delay: work.start[row] - start, sinceReturn: work.start[row] - end };
  });
}

/** @param {Answer} _ @param {Asked} asked */
function launches(_, asked) {
  const { rows: { calls: table }, answers } = asked;
  const names = answers.calls.values[0];
  const found = [...groupedBy(launched(asked), (each) => String(names[table.code[each.call]]))].map(([api, own]) => {
    const called = [...new Set(own.map((each) => each.call))];
    const delays = ascending(own.map((each) => each.delay));
    const queued = ascending(own.map((each) => Math.max(each.sinceReturn, 0)));
    return {
      api,
      calls: called.length,
      activities: own.length,
      count: own.length,
      total_ns: own.length,
      api_ns: called.reduce((sum, each) => sum + table.length[each], 0),
      min_delay_ns: delays[0],
      median_delay_ns: lowerMedian(delays),
      max_delay_ns: delays[delays.length - 1],
      min_queue_ns: own.reduce((least, each) => Math.min(least, each.sinceReturn), Infinity),
      median_queue_ns: lowerMedian(queued),
      max_queue_ns: queued[queued.length - 1],
      longest: longestOf(table, called),
    };
  });
  return longestFirst(found, ["api", "count"]); // those with the most activities
}

/** @param {Answer} _ @param {Asked} asked */
function launchDelays(_, asked) {
  const { info, rows: { work, calls: table }, cut } = asked;
  const callPlaces = new Map(cut.calls.map((row, place) => [row, place]));
  const rowsOf = (/** @type {number} */ number) => (info.activity_tables[number] === "graph_launches" ? cut.graph_launches
    : ascending(cut.work.filter((row) => work.table[row] === number).map((row) => work.row[row])));
  const places = info.activity_tables.map((_, number) => new Map(rowsOf(number).map((row, place) => [row, place])));
  return launched(asked).map(({ row, call, api, delay, sinceReturn }) => {
    return {
      table: info.activity_tables[work.table[row]], row: places[work.table[row]].get(work.row[row]), ...streamKeys(asked, work.stream[row]),
      api_row: callPlaces.get(call), api_ns: api, delay_ns: delay, queue_ns: Math.max(sinceReturn, 0),
    };
  });
}

/** For each stream the time of each depth of its queue. @param {Asked} asked */
function queues(asked) {
  const { work } = asked.rows;
  const followed = launched(asked).filter((each) => each.start <= work.start[each.row]); // clocks may disagree
  return [...groupedBy(followed, (each) => work.stream[each.row])].sort((one, other) => one[0] - other[0]).map(([stream, own]) => {
    const queued = own.map((each) => ({ start: each.start, end: work.start[each.row] }));
    const window = { start: queued.reduce((least, each) => Math.min(least, each.start), Infinity),
      end: queued.reduce((most, each) => Math.max(most, each.end), -Infinity) };
    return { keys: streamKeys(asked, stream), activities: own.length, length: window.end - window.start, byDepth: timesByNumber(queued, window) };
  });
}

/** @param {Answer} _ @param {Asked} asked */
function queueByStream(_, asked) {
  return queues(asked).map(({ keys, activities, length, byDepth }) => ({
    ...keys, activities, window_ns: length, empty_ns: byDepth[0], empty_share: ratio(byDepth[0], length),
    mean_depth: ratio(byDepth.reduce((sum, duration, depth) => sum + duration * depth, 0), length),
    max_depth: byDepth.reduce((most, duration, depth) => (duration ? depth : most), 0),
  }));
}

/** @param {Answer} _ @param {Asked} asked */
function queueByDepth(_, asked) {
  return queues(asked).flatMap(({ keys, length, byDepth }) => byDepth.flatMap((duration, depth) =>
    (duration ? [{ ...keys, depth, duration_ns: duration, share: ratio(duration, length) }] : [])));
}

/** @param {Answer} whole @param {Asked} asked */
function tracingCost(whole, { rows: { overheads }, cut: { part, overheads: cut } }) {
  // The CPU time of the collector's thread is known of the whole step only.
  const found = [...groupedBy(cut, (row) => overheads.code[row])].map(([code, own]) => {
    const covered = lengthOf(union(own.map((row) => clipped(timesOf(overheads, row), part))));
    return {
      ...rowOf(whole, code), count: own.length, total_ns: own.reduce((sum, row) => sum + overheads.length[row], 0),
      covered_ns: covered, share: ratio(covered, part.end - part.start),
    };
  });
  return longestFirst(found, ["kind", "count"]);
}

/** @type {Record<string, {rows: (whole: Answer, asked: Asked, key: string) => Row[], needs?: string[], largest?: string}>}
 * `largest`: the column whose largest figures a view shows. */
const QUESTIONS = {
  devices: { rows: devices },
  concurrency: { rows: concurrency },
  streams: { rows: streams },
  "overlap/device": { rows: overlapByDevice },
  "overlap/stream": { rows: overlapByStream },
  "overlap/group": { rows: overlapByGroup, needs: ["overlap/group"] },
  idle: { rows: idle },
  idle_ops: { rows: idleOps, needs: ["annotation_times/name"], largest: "idle_ns" },
  idle_gaps: { rows: idleGaps },
  ...Object.fromEntries(["name", "whole_name", "shape", "stream"].map((by) =>
    [`kernels/${by}`, { rows: kernels, needs: [`kernels/${by}`, "tensor_cores/use"] }])),
  "kernels/op": { rows: kernels, needs: ["kernels/op", "tensor_cores/use"] },
  "tensor_cores/use": { rows: kernels, needs: ["tensor_cores/use"] },
  "tensor_cores/name": { rows: kernels, needs: ["tensor_cores/name", "tensor_cores/use"] },
  occupancy: { rows: kernels, needs: ["occupancy", "tensor_cores/use"] },
  ops: { rows: ops, needs: ["annotation_times/name"], largest: "self_ns" },
  copies: { rows: copies, needs: ["copies"] },
  launches: { rows: launches, needs: ["calls"] },
  launch_delays: { rows: launchDelays },
  "queue/stream": { rows: queueByStream },
  "queue/depth": { rows: queueByDepth },
  calls: { rows: calls, needs: ["calls"] },
  "annotation_times/name": { rows: annotationTimes, needs: ["annotation_times/name"] },
  "annotation_times/path": { rows: annotationPathTimes, needs: ["annotation_times/name"] },
  "memory/pool": { rows: memoryByPool },
  backward: { rows: backward, needs: ["annotation_times/name"] },
  "memory_growth/step": { rows: growthByStep, needs: ["annotation_times/name"] },
  "memory_growth/op": { rows: growthByOp, needs: ["annotation_times/name"] },
  "memory/op": { rows: memoryByOp, needs: ["annotation_times/name"] },
  tracing_cost: { rows: tracingCost, needs: ["tracing_cost"] },
};

/** Whether the page can answer a question about parts of a step. @param {Record<string, Answer>} answers @param {string} key */
export function follows(answers, key) {
  const question = QUESTIONS[key];
  const isHeld = (/** @type {string} */ each) => !(each in answers) || answers[each].rows <= answers[each].values[0].length;
  return question !== undefined && (question.needs ?? []).every(isHeld);
}

/** The answer about a part of a step. @param {Asked} asked @param {string} key for which `follows` is true @returns {Answer} */
export function partAnswer(asked, key) {
  const whole = asked.answers[key];
  const { part } = asked.cut;
  const question = QUESTIONS[key];
  const rows = question.rows(whole, asked, key);
  const given = givenRows(rows, whole.columns);
  const valuesOf = (/** @type {Row[]} */ some) => whole.columns.map(({ name }) => some.map((row) => row[name]));
  return {
    ...whole,
    values: valuesOf(given.rows),
    rows: rows.length,
    chosen_by: given.chosen_by,
    left_out: given.left_out,
    longest: longestTimes(given.rows),
    largest: question.largest ? valuesOf(largestPaths(rows, question.largest)) : [],
    totals: Object.fromEntries(Object.keys(whole.totals).map((name) => [name, rows.reduce((sum, row) => sum + Number(row[name]), 0)])),
    losses: lossesOn(asked, key),
    notes: notesOn(asked, key, rows.length),
    part,
    sql: "",
    ...within(whole, part),
  };
}
