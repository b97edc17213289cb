SELECT
  "t0"."run",
  "t0"."rank",
  "t0"."step",
  "t0"."start_ns" AS "start",
  "t0"."start_ns" + "t0"."duration_ns" AS "end",
  "t0"."device_id" AS "deviceId",
  "t0"."context_id" AS "contextId",
  "t0"."stream_id" AS "streamId",
  "t0"."correlation_id" AS "correlationId",
  "t0"."process_id" * 16777216 AS "globalPid",
  "t0"."graph_node_id" AS "graphNodeId",
  "t0"."num_bytes" AS "bytes",
  "t0"."copy_kind" AS "copyKind",
  "t0"."src_kind" AS "srcKind",
  "t0"."dst_kind" AS "dstKind"
FROM "copies" AS "t0"
