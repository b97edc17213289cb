SELECT
  "t0"."run",
  "t0"."rank",
  "t0"."step",
  "t0"."device_id" AS "id",
  "t0"."name",
  "t0"."memory_bytes" AS "totalMemory",
  "t0"."memory_bandwidth_bytes_per_s" AS "memoryBandwidth",
  "t0"."clock_hz" AS "clockRate",
  "t0"."sm_count" AS "smCount",
  "t0"."cc_major" AS "computeMajor",
  "t0"."cc_minor" AS "computeMinor",
  "t0"."max_warps_per_sm" AS "maxWarpsPerSm",
  "t0"."max_blocks_per_sm" AS "maxBlocksPerSm"
FROM "devices" AS "t0"
